import { createHash, randomBytes } from 'node:crypto'

import { agentId, ensembleId, uuidV7, type AgentId, type EnsembleId } from '@tutti/core'

const random = () => randomBytes(10)

export const newAgentId = (now: number): AgentId => agentId(now, random())
export const newEnsembleId = (now: number): EnsembleId => ensembleId(now, random())
/** Names one accepted prompt. */
export const newTurnId = (now: number): string => `tn-${uuidV7(now, random())}`
/** Names one command; the same key gives the same name, so that Temporal recognises a repeat. */
export const requestIdOf = (owner: string, key: string): string =>
  key === ''
    ? `rq-${randomBytes(16).toString('hex')}`
    : `rq-${createHash('sha256').update(`${owner}\0${key}`).digest('hex').slice(0, 32)}`
