/** The published table of an agent's states (design §4), as data: what each command does in each state, and which states may follow. */
export const agentCommands = ['follow-up', 'stop', 'pause', 'resume', 'archive', 'make pull request'] as const
export type AgentCommandName = (typeof agentCommands)[number]

export const agentStates = [
  'RUNNING',
  'IDLE',
  'IDLE+paused',
  'ERROR',
  'ERROR+paused',
  'ARCHIVED',
  'EXPIRED',
] as const
export type AgentStateName = (typeof agentStates)[number]

/**
 * The state that the agent comes to when the command is given with no turn waiting, `refused`, or for what waits behind another
 * turn `queued`.
 */
export type Outcome = AgentStateName | 'refused' | 'queued'

export const stateTable: Record<AgentStateName, Record<AgentCommandName, Outcome>> = {
  RUNNING: {
    'make pull request': 'refused',
    resume: 'RUNNING',
    'follow-up': 'queued',
    stop: 'IDLE',
    pause: 'IDLE+paused',
    archive: 'ARCHIVED',
  },
  IDLE: {
    'make pull request': 'IDLE',
    resume: 'IDLE',
    stop: 'IDLE',
    'follow-up': 'RUNNING',
    pause: 'IDLE+paused',
    archive: 'ARCHIVED',
  },
  'IDLE+paused': {
    'make pull request': 'IDLE+paused',
    stop: 'IDLE+paused',
    pause: 'IDLE+paused',
    resume: 'IDLE',
    archive: 'ARCHIVED',
    'follow-up': 'queued',
  },
  ERROR: {
    'make pull request': 'ERROR',
    stop: 'ERROR',
    'follow-up': 'RUNNING',
    pause: 'ERROR+paused',
    resume: 'IDLE',
    archive: 'ARCHIVED',
  },
  'ERROR+paused': {
    'make pull request': 'ERROR+paused',
    stop: 'ERROR+paused',
    pause: 'ERROR+paused',
    resume: 'IDLE',
    archive: 'ARCHIVED',
    'follow-up': 'queued',
  },
  ARCHIVED: {
    'make pull request': 'ARCHIVED',
    'follow-up': 'refused',
    stop: 'ARCHIVED',
    pause: 'refused',
    archive: 'ARCHIVED',
    resume: 'IDLE',
  },
  EXPIRED: {
    'make pull request': 'EXPIRED',
    'follow-up': 'refused',
    stop: 'EXPIRED',
    pause: 'refused',
    archive: 'refused',
    resume: 'refused',
  },
}

/** States that may follow in the log. The same state again is a change of what waits. */
export const stateGraph: Record<AgentStateName | 'UNSPECIFIED', readonly AgentStateName[]> = {
  UNSPECIFIED: ['RUNNING', 'ARCHIVED', 'EXPIRED'],
  RUNNING: ['RUNNING', 'IDLE', 'IDLE+paused', 'ERROR', 'ERROR+paused', 'ARCHIVED', 'EXPIRED'],
  IDLE: ['RUNNING', 'IDLE+paused', 'ARCHIVED', 'EXPIRED'],
  'IDLE+paused': ['IDLE+paused', 'RUNNING', 'IDLE', 'ARCHIVED', 'EXPIRED'],
  ERROR: ['RUNNING', 'IDLE', 'ERROR+paused', 'ARCHIVED', 'EXPIRED'],
  'ERROR+paused': ['ERROR+paused', 'RUNNING', 'IDLE', 'ARCHIVED', 'EXPIRED'],
  ARCHIVED: ['RUNNING', 'IDLE', 'EXPIRED'],
  EXPIRED: [],
}
