import type { Activities, ChildEnd, TurnWaiting } from '@tutti/activities'
import type { AgentState } from '@tutti/core'
import { reduceAgent, type AgentInput } from '@tutti/core'
import {
  CancellationScope,
  allHandlersFinished,
  condition,
  continueAsNew,
  defineQuery,
  defineSignal,
  proxyActivities,
  setCurrentDetails,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow'
import { handleCommands } from './commands.ts'
import {
  agentStateQuery,
  releaseSandboxSignal,
  turnWaitingSignal,
  type CloudAgentInput,
  type CloudAgentResult,
  type CommandAnswer,
  type Delivery,
  type Errand,
  type Recovery,
} from './contract.ts'
import { agentDetails, createStatusDisplay } from './operator-text.ts'
import { profilesOf } from './profiles.ts'
import { createRecorder } from './recorder.ts'
import { recoverSandbox } from './recover-sandbox.ts'
import { createSandboxLife } from './sandbox-life.ts'
import { workOnTurn } from './work-on-turn.ts'

/**
 * The life of one agent (design §4). The run returns when the agent is at rest and either belongs to an ensemble or has been
 * inactive for long enough to release its sandbox; the next command starts a new run from the stored state.
 */
export async function cloudAgent(input: CloudAgentInput): Promise<CloudAgentResult> {
  let state: AgentState = input.state
  let turns = input.turns
  let hadSandbox = input.hadSandbox
  /** Of the turn or the recovery that is under way. */
  let workScope: CancellationScope | undefined
  let working: 'turn' | 'recovery' | undefined
  // A cancel from outside (an operator, the ensemble) is a stop of everything.
  let cancelled = false
  let releaseAsked = false
  /** The sandbox was given to somebody who waited: the run stays open until it would have been released anyway. */
  let lent = false
  let lastDetail = ''
  /** The turn that waits for an answer. */
  let waitingTurn: string | undefined
  const errands: Errand[] = [...(input.errands ?? input.deliveries ?? [])]
  const asked = () => errands.find((errand) => errand.type === 'recover')
  const seen = new Map<string, CommandAnswer>(input.seen)
  const sandbox = createSandboxLife(input, {
    turns: () => turns,
    recorded: () => recorder.flushed(),
    onStage: () => showDetails(),
    asked,
    recovered: (recovery) => void errands.splice(errands.indexOf(recovery), 1),
  })
  const profiles = profilesOf(input.timings.heartbeatMs)
  const { recordState } = proxyActivities<Activities>({ ...profiles.record, summary: 'record the state' })
  const recorder = createRecorder({
    recordState,
    snapshot: () => ({
      bcId: input.bcId,
      owner: input.owner,
      configBlobId: input.configBlobId,
      ...(input.ensembleId && { ensembleId: input.ensembleId }),
      ...(input.memberOf && { memberOf: input.memberOf }),
      state,
      turns,
      incarnation: sandbox.incarnation(),
      hadSandbox,
    }),
  })

  const isClosed = () => state.status === 'ARCHIVED' || state.status === 'EXPIRED'
  /** A turn has a sandbox, or one is being made for it. One that waits for its slot gets the new one anyway. */
  const isReplaceable = () => working === 'turn' && ['making', 'ready'].includes(sandbox.stage())
  const inScope = async <T>(what: 'turn' | 'recovery', work: () => Promise<T>): Promise<T> => {
    const scope = new CancellationScope()
    workScope = scope
    working = what
    if (state.ending || isClosed() || cancelled) scope.cancel()
    try {
      return await scope.run(work)
    } finally {
      workScope = working = undefined
    }
  }

  const showStatus = createStatusDisplay()
  const showDetails = () =>
    setCurrentDetails(
      agentDetails(input, state, {
        turns,
        waitsForAnswer: waitingTurn !== undefined && waitingTurn === state.current?.turnId,
        incarnation: sandbox.incarnation(),
        stage: sandbox.stage(),
      }),
    )
  const addStatus = () =>
    recorder.add({
      type: 'status',
      status: state.status,
      paused: state.paused,
      ...(state.reason && { reason: state.reason }),
      queued: state.queue.length,
      hadSandbox,
    })
  const move = (next: AgentState) => {
    const changed =
      next.status !== state.status || next.paused !== state.paused || next.queue.length !== state.queue.length
    const expired = next.status === 'EXPIRED' && state.status !== 'EXPIRED'
    state = next
    showDetails()
    if (!changed) return
    showStatus(state)
    if (expired) recorder.add({ type: 'session_close', reason: state.reason ?? 'expired' })
    addStatus()
  }
  const feed = (change: AgentInput) => {
    const next = reduceAgent(state, change)
    if (!('rejected' in next) && next !== state) move(next)
  }

  handleCommands({
    state: () => state,
    seen,
    inUse: () => (isReplaceable() ? sandbox.incarnation() : undefined),
    accept(next, { command, requestId, planBlobId }) {
      if (command.type === 'deliver')
        return void errands.push({ requestId, ...(planBlobId && { planBlobId }) })
      if (command.type === 'recover') {
        errands.push({ type: 'recover', requestId, ...(command.at !== undefined && { at: command.at }) })
        if (isReplaceable()) workScope?.cancel()
        return
      }
      if ('turn' in command) recorder.add({ type: 'user_message', turn: command.turn })
      move(next)
      if (state.ending || isClosed()) workScope?.cancel()
    },
  })
  setHandler(
    defineQuery<unknown>(agentStateQuery),
    () => ({ state, turns, incarnation: sandbox.incarnation() }),
    { description: 'The state as JSON: status, current and waiting turns' },
  )
  setHandler(
    defineSignal(releaseSandboxSignal),
    () => {
      releaseAsked = true
    },
    { description: 'Asks an idle agent to give its sandbox to one that waits' },
  )
  setHandler(
    defineSignal<[TurnWaiting]>(turnWaitingSignal),
    ({ turnId, waits }) => {
      waitingTurn = waits ? turnId : undefined
      showDetails()
    },
    { description: 'Says whether the running turn waits for an answer; only shown' },
  )

  const begin = () => {
    if (input.turns === 0 && input.state.status === 'UNSPECIFIED' && !input.seen)
      recorder.add({ type: 'session_start' })
    if (!input.firstTurn) return
    recorder.add({ type: 'user_message', turn: input.firstTurn })
    feed({ type: 'follow_up', turn: input.firstTurn })
  }

  const turn = async () => {
    const current = state.current!
    lent = false
    if (!current.begun) turns += 1
    const end = await inScope('turn', () =>
      workOnTurn(current, turns, {
        input,
        sandbox,
        recorder,
        state: () => state,
        isCut: () => asked() !== undefined,
        onReady: () => {
          // A worker that was killed while the agent asked could not say that nobody waits any more.
          waitingTurn = undefined
          showDetails()
          if (hadSandbox) return
          // Clients of the seeds see CREATING until now (design §4), so the same status is said again.
          hadSandbox = true
          addStatus()
        },
      }),
    )
    if (!end) return feed({ type: 'turn_cut' })
    lastDetail = end.detail ?? ''
    recorder.add({
      type: 'turn_ended',
      turnId: current.turnId,
      reason: end.reason,
      ...(end.detail && { detail: end.detail.slice(0, 1024) }),
    })
    feed({ type: 'turn_ended', reason: end.reason, failed: end.failed })
  }

  const deliver = async ({ requestId, planBlobId }: Delivery) => {
    await recorder.flushed()
    const { deliverAgent } = proxyActivities<Activities>({ ...profiles.git, summary: 'deliver' })
    await deliverAgent({ ...sandbox.scope(), requestId, ...(planBlobId && { planBlobId }) }).catch(
      () => undefined,
    )
    errands.shift()
  }

  const recover = async (recovery: Recovery) => {
    lent = false
    const failure = await inScope('recovery', () => recoverSandbox(sandbox))
    if (!failure) return
    errands.splice(errands.indexOf(recovery), 1)
    const reason =
      failure === 'cancelled' ? (state.ending ?? state.reason ?? 'stopped_by_user') : failure.reason
    const detail = failure === 'cancelled' ? '' : failure.detail.slice(0, 1024)
    recorder.add({
      type: 'recovery_failed',
      requestId: recovery.requestId,
      reason,
      ...(detail && { detail }),
    })
  }

  const hasWork = () => state.status === 'RUNNING' || errands.length > 0
  const isFull = () =>
    workflowInfo().continueAsNewSuggested || workflowInfo().historyLength > (input.testMaxHistory ?? Infinity)

  CancellationScope.current().cancelRequested.catch(() => {
    cancelled = true
    feed({ type: 'stop', all: true })
    workScope?.cancel()
  })

  /** Nothing is left for this run to wait for; a paused child with waiting turns still belongs to its ensemble. */
  const mayReturn = () =>
    cancelled || isClosed() || (input.ensembleId ? state.queue.length === 0 : !sandbox.has() && !lent)

  const live = async () => {
    for (;;) {
      // What was accepted at rest is delivered as it was then, before a newer turn changes it.
      const [errand] = errands
      if (errand?.type === 'recover') await recover(errand)
      else if (errand) await deliver(errand)
      else if (state.status === 'RUNNING') await turn()
      else if (mayReturn()) return
      else {
        releaseAsked = false
        const woken = await condition(
          () => hasWork() || mayReturn() || releaseAsked || recorder.failed(),
          input.timings.inactivityMs,
        )
        if (!woken || recorder.failed()) return
        if (releaseAsked && !hasWork()) {
          lent = true
          await sandbox.release()
        }
      }
      if (isFull()) return
    }
  }

  /** A child leaves its attempt for its ensemble, while its sandbox still knows what it said last. */
  const settle = async () => {
    await recorder.flushed()
    if (input.ensembleId) {
      const { recordAttempt } = proxyActivities<Activities>({
        ...profiles.record,
        summary: 'record the attempt',
      })
      await recordAttempt({
        ...sandbox.scope(),
        ensembleId: input.ensembleId,
        status: state.status === 'ERROR' || isClosed() ? (state.status as ChildEnd['status']) : 'IDLE',
        reason: state.reason ?? 'stopped_by_user',
        detail: lastDetail.slice(0, 4096),
      })
    }
  }

  return CancellationScope.nonCancellable(async () => {
    const recording = recorder.run()
    begin()
    for (;;) {
      try {
        await live()
        if (!hasWork()) await settle()
      } finally {
        if (!hasWork() || isFull() || recorder.failed()) await sandbox.release()
      }
      await condition(allHandlersFinished)
      await recorder.flushed()
      // From here to the end nothing is waited for, so that no command can come in between and be lost.
      if (!hasWork() || isFull()) break
    }
    recorder.stop()
    await recording
    if (hasWork()) {
      const { firstTurn: _, deliveries: __, ...rest } = input
      return continueAsNew<typeof cloudAgent>({
        ...rest,
        state,
        turns,
        hadSandbox,
        incarnation: sandbox.incarnation(),
        seen: [...seen],
        errands,
      })
    }
    return { bcId: input.bcId, status: state.status, reason: state.reason ?? 'completed' }
  })
}
