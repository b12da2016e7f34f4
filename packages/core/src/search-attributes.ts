/** Temporal search attributes, all of type Keyword, by which operators find agents and ensembles (design §5). */
export const searchAttributes = {
  status: 'AgentStatus',
  owner: 'AgentOwner',
  repository: 'AgentRepo',
  ensemble: 'EnsembleId',
  grind: 'GrindId',
} as const
