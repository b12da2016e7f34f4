import type { AgentStatus } from './agent-status.ts'
import type { AgentId } from './ids.ts'
import type { Reason } from './reasons.ts'

/** How a check command ended; `exitCode` is null when it was killed or timed out. `tail` is the end of its output. */
export interface CheckResult {
  readonly exitCode: number | null
  readonly tail: string
  readonly durationMs: number
}

/** What one agent made: commit, check and cost (design §1). `commit` equals `base` when nothing changed. */
export interface Attempt {
  readonly bcId: AgentId
  readonly status: AgentStatus
  readonly reason: Reason
  readonly base: string
  readonly commit: string
  readonly filesChanged: number
  readonly check?: CheckResult
  /** Last words of the agent, at most 2 KiB. */
  readonly summary: string
  /** For a failure: the end of the output that explains it, at most 4 KiB. */
  readonly detail: string
}

/** Whether it ended well and changed something, so that it can be combined. */
export const isCandidate = (attempt: Attempt): boolean =>
  attempt.status === 'IDLE' && attempt.reason === 'completed' && attempt.commit !== attempt.base

/** Whether its own check passed; an attempt without a check counts as passed. */
export const passedCheck = (attempt: Attempt): boolean => !attempt.check || attempt.check.exitCode === 0
