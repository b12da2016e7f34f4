import type { ActivityInterceptorsFactory } from '@temporalio/worker'
import { ApplicationFailure, CancelledFailure } from '@temporalio/common'
import { isAgentId, isEnsembleId, type AgentId, type EnsembleId } from '@tutti/core'

/** One attempt at an activity, as traces, metrics and log lines see it. */
export interface ActivityCall {
  readonly type: string
  /** From 1. */
  readonly attempt: number
  readonly owner?: string
  readonly bcId?: AgentId
  /** Its ensemble, or the one that made the agent. */
  readonly ensembleId?: EnsembleId
  /** Number of the agent's turn, from 1. */
  readonly turn?: number
  readonly incarnation?: number
  /** The activity's one argument: prompts and secrets are not in it, only ids (design §3). */
  readonly input: Readonly<Record<string, unknown>>
}

/** Runs the activity, and sees how it ends. It must return or throw what the activity does. */
export type ActivityObserver = (call: ActivityCall, run: () => Promise<unknown>) => Promise<unknown>

/** Temporal's interceptors from observers, the first one outermost. */
export function observeActivities(observers: readonly ActivityObserver[]): ActivityInterceptorsFactory {
  return ({ info }) => ({
    inbound: {
      execute(input, next) {
        const call = toCall(info.activityType, info.attempt, input.args[0])
        const chain = observers.reduceRight<() => Promise<unknown>>(
          (run, observe) => () => observe(call, run),
          () => next(input),
        )
        return chain()
      },
    },
  })
}

/** How an attempt ended, in one word of a closed list: a reason, or `cancelled`. */
export function failureWord(thrown: unknown): string {
  if (thrown instanceof CancelledFailure) return 'cancelled'
  return (thrown instanceof ApplicationFailure && thrown.type) || 'internal'
}

function toCall(type: string, attempt: number, argument: unknown): ActivityCall {
  const input = typeof argument === 'object' && argument !== null ? (argument as ActivityCall['input']) : {}
  const text = (name: string) => (typeof input[name] === 'string' ? input[name] : '')
  const count = (name: string) => (typeof input[name] === 'number' ? input[name] : undefined)
  const bcId = text('bcId')
  const ensembleId = text('ensembleId') || text('memberOf')
  const turn = count('number') ?? count('turns')
  const incarnation = count('incarnation')
  return {
    type,
    attempt,
    input,
    ...(text('owner') && { owner: text('owner') }),
    ...(isAgentId(bcId) && { bcId }),
    ...(isEnsembleId(ensembleId) && { ensembleId }),
    ...(turn !== undefined && { turn }),
    ...(incarnation !== undefined && { incarnation }),
  }
}
