import type { Activities, ChildEnd, EnsembleScope, RecordPhase } from '@tutti/activities'
import type { Reason } from '@tutti/core'
import { initialEnsembleState, isEnsembleEnd, reduceEnsemble, type EnsembleInput } from '@tutti/core'
import {
  CancellationScope,
  allHandlersFinished,
  condition,
  defineUpdate,
  isCancellation,
  proxyActivities,
  setCurrentDetails,
  setHandler,
  sleep,
  workflowInfo,
} from '@temporalio/workflow'
import { runChildren } from './children.ts'
import { ensembleUpdates, type ParallelAgentsInput, type ParallelAgentsResult } from './contract.ts'
import { readFailure } from './failure.ts'
import { createStatusDisplay, ensembleDetails, type ChildLine } from './operator-text.ts'
import { profilesOf } from './profiles.ts'
import { synthesize, type Synthesis } from './synthesize.ts'

/** How an ensemble ends, before it is recorded. */
interface End {
  readonly reason: Reason
  readonly failed: boolean
  readonly synthesis?: Synthesis
  readonly detail?: string
}

/**
 * One task for several agents (design §1, §5): starts the children, waits for all of them, combines what they made, has it
 * checked and delivers it. Never continues as new while children live; at most 50 children keep its history small.
 */
export async function parallelAgents(input: ParallelAgentsInput): Promise<ParallelAgentsResult> {
  const scope: EnsembleScope = {
    ensembleId: input.ensembleId,
    owner: input.owner,
    configBlobId: input.configBlobId,
  }
  const lines = new Map<string, ChildLine>(
    input.children.map(({ bcId, title }) => [bcId, { bcId, title, state: 'waiting' }]),
  )
  const profiles = profilesOf(input.timings.heartbeatMs)
  const { recordPhase } = proxyActivities<Activities>({ ...profiles.record, summary: 'record the phase' })
  const { gather } = proxyActivities<Activities>({ ...profiles.git, summary: 'gather the attempts' })
  const { deliver } = proxyActivities<Activities>({
    ...profiles.git,
    summary: 'push and open the pull request',
  })
  const work = new CancellationScope()
  let state = initialEnsembleState
  let stopReason: 'stopped_by_user' | 'timeout' | undefined
  let sequence = 0

  const stop = (reason: 'stopped_by_user' | 'timeout') => {
    if (stopReason || isEnsembleEnd(state.phase)) return
    stopReason = reason
    work.cancel()
  }
  setHandler(
    defineUpdate<string, [{ requestId: string }]>(ensembleUpdates.stop),
    () => {
      stop('stopped_by_user')
      return state.phase
    },
    { description: 'Stops every child and ends the ensemble' },
  )
  CancellationScope.current().cancelRequested.catch(() => stop('stopped_by_user'))

  const showStatus = createStatusDisplay()
  const show = () => setCurrentDetails(ensembleDetails(input, state.phase, state.reason, [...lines.values()]))

  const enter = async (change: EnsembleInput, more: Pick<RecordPhase, 'detail' | 'result'> = {}) => {
    const next = reduceEnsemble(state, change)
    if (next === state) return
    state = next
    show()
    showStatus({ status: state.phase })
    sequence += 1
    await CancellationScope.nonCancellable(() =>
      recordPhase({
        ...scope,
        runId: workflowInfo().runId,
        sequence,
        phase: state.phase,
        ...(state.reason && { reason: state.reason }),
        ...more,
      }),
    )
  }

  const gatherAndDeliver = async (): Promise<End> => {
    await enter({ type: 'start' })
    let announced = Promise.resolve()
    const ends: ChildEnd[] = await runChildren({
      input,
      onStarted: () => {
        announced = enter({ type: 'children_started' })
      },
      onState: ({ bcId, title }, childState) => {
        lines.set(bcId, { bcId, title, state: childState })
        show()
      },
    })
    await announced
    await enter({ type: 'children_settled' })
    const plan = await CancellationScope.nonCancellable(() => gather({ ...scope, children: ends }))
    if (stopReason) return { reason: stopReason, failed: true }
    if (plan.candidates === 0) {
      return plan.unchanged > 0
        ? { reason: 'nothing_to_deliver', failed: false }
        : { reason: 'all_children_failed', failed: true }
    }
    await enter({ type: 'attempts_gathered' })
    const synthesis = await synthesize(input, scope, plan)
    if (!synthesis) return { reason: 'check_failed', failed: true }
    // A stop comes too late here: an ensemble that ended as stopped must not have a pull request.
    const { outcome } = await CancellationScope.nonCancellable(() => deliver({ ...scope, ...synthesis }))
    if (outcome === 'nothing_to_deliver') return { reason: 'nothing_to_deliver', failed: false, synthesis }
    if (outcome === 'failed') return { reason: 'delivery_failed', failed: true, synthesis }
    return { reason: 'completed', failed: false, synthesis }
  }

  const deadline = new CancellationScope()
  return CancellationScope.nonCancellable(async () => {
    const timer = deadline
      .run(() => sleep(input.ensembleTimeoutMs, { summary: 'time limit of the ensemble' }))
      .then(() => stop('timeout'))
      .catch(() => undefined)
    const end = await work.run(gatherAndDeliver).catch((thrown: unknown): End => {
      if (isCancellation(thrown)) return { reason: stopReason ?? 'stopped_by_user', failed: true }
      const failure = readFailure(thrown)!
      return { reason: failure.reason, failed: true, detail: failure.detail }
    })
    deadline.cancel()
    await timer
    await enter(end.failed ? { type: 'fail', reason: end.reason } : { type: 'finish', reason: end.reason }, {
      ...(end.detail && { detail: end.detail.slice(0, 1024) }),
      result: {
        ...(end.synthesis && {
          finalCommit: end.synthesis.commit,
          included: end.synthesis.included,
          reportBlobId: end.synthesis.reportBlobId,
        }),
      },
    })
    await condition(allHandlersFinished)
    return {
      ensembleId: input.ensembleId,
      phase: end.failed ? 'ERROR' : 'COMPLETED',
      reason: end.reason,
    }
  })
}
