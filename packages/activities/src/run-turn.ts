import { parseAgentSpec, TuttiError, wholePrompt, type Reason } from '@tutti/core'
import type { CommandEvent } from '@tutti/protocol'
import { attachSession } from './attach-session.ts'
import { withHeartbeat, type CancelCause } from './heartbeat.ts'
import { createCapturePace } from './capture-pace.ts'
import type { ConfigBlobs } from './config-blobs.ts'
import type { Activities, TurnInput, TurnResult } from './contract.ts'
import { tailCommands } from './command-tail.ts'
import type { ActivityDeps } from './deps.ts'
import { orFail, sandboxLost } from './fail.ts'
import { createOpenQuestion, type OpenQuestion } from './open-question.ts'
import { createOwnedBlobs } from './owned-blobs.ts'
import { limitBehind, limitDetail } from './sandbox-limit.ts'
import { saveSession } from './save-session.ts'
import { saveStatesDuringTurn } from './save-states-during-turn.ts'
import { syncFiles } from './sync-files.ts'
import { createTurnControl, type TurnControl, type TurnStop } from './turn-control.ts'
import { createTurnEvents, type TurnEvents } from './turn-events.ts'
import { watchEndOfLife } from './end-of-life.ts'
import { createDeadline, orKillSilent } from './kill-silent.ts'
import type { HostSession, Sessions } from './sessions.ts'

/**
 * One turn of an agent in its sandbox, until it stops or is stopped (design §3). Returns how it ended; fails with `sandbox_lost`
 * when the turn must go on elsewhere.
 */
export function createRunTurn(
  deps: ActivityDeps,
  configs: ConfigBlobs,
  sessions: Sessions,
): Activities['runTurn'] {
  return (input) =>
    orFail(() =>
      withHeartbeat(input.heartbeatMs, async (cancelled, phase, cancelCause) => {
        const session = sessions.get(input)
        if (session.killed) throw sandboxLost('The sandbox did not survive the last stop.', 'handover')
        session.stopped = false
        const stoodIdle = session.turnId !== undefined
        session.turnId = input.turn.turnId
        session.inTurn = true
        const control = createTurnControl({
          timeoutMs: input.timeoutMs,
          stallMs: session.config.stallTimeoutMs,
        })
        const tail = new AbortController()
        const onCancel = () => control.end(stopOfCancel(cancelCause()))
        cancelled.addEventListener('abort', onCancel, { once: true })
        const onDrain = () => control.end(stopOfCancel('shutdown'))
        if (deps.draining.aborted) onDrain()
        deps.draining.addEventListener('abort', onDrain, { once: true })
        const stopWatching = watchEndOfLife(deps, session, control)
        void session.server.lost.then((why) =>
          control.end({ kind: 'lost', reason: 'sandbox_lost', detail: why }),
        )
        try {
          if (stoodIdle && !control.ended()) {
            phase('attach')
            await attachSession(deps, session, control.signal)
          }
          session.quiet = false
          if (session.workspace.hasUnwritten() && !control.ended()) {
            phase('sync')
            await syncFiles(session, [], control.signal).catch((error: unknown) =>
              deps.log.warn({ err: error, bc_id: session.bcId }, 'writing what the user has changed failed'),
            )
          }
          phase('open')
          const text = await configs.text(input.turn.promptBlobId, session.controller.signal)
          const { promptSuffix } = session.config
          const prompt = wholePrompt(text, promptSuffix)
          phase('turn')
          let began = false
          const onBegin = () => {
            began = true
          }
          const end = await deps.crashPoint('turn.run', () =>
            work(deps, session, input, prompt, control, tail.signal, onBegin),
          )
          // As the log has it: one that was stopped before it began has told the agent nothing.
          if (began) session.putBackTo = undefined
          return end
        } finally {
          cancelled.removeEventListener('abort', onCancel)
          deps.draining.removeEventListener('abort', onDrain)
          tail.abort()
          stopWatching()
          control.close()
          session.inTurn = false
        }
      }),
    )
}

function stopOfCancel(cause: CancelCause): TurnStop {
  if (cause === 'stopped') return { kind: 'command', reason: 'stopped_by_user', detail: '' }
  return {
    kind: 'handover',
    reason: 'sandbox_lost',
    detail: cause === 'shutdown' ? 'The worker shuts down.' : 'Another worker took over.',
  }
}

async function work(
  deps: ActivityDeps,
  session: HostSession,
  input: TurnInput,
  prompt: string,
  control: TurnControl,
  tailSignal: AbortSignal,
  onBegin: () => void,
): Promise<TurnResult> {
  const { eventLog } = deps
  const { bcId, log, server, workspace } = session
  const { blobRefs } = deps.catalog
  const blobs = createOwnedBlobs(deps.blobs, (ids, signal) => blobRefs.add(session.owner, ids, signal))
  const events = createTurnEvents(log, blobs, session.controller.signal)
  const question = createOpenQuestion(deps, session, control, input.turn.turnId)
  server.onToolEnded(async (signal) => {
    await workspace.capture(signal).catch(failedCapture)
    await log.flush()
    await workspace.checkpointWhenDue(input.turn.turnId, deps.checkpointIntervalMs, signal)
  })
  const unwinding = killWhenStuck(deps, session, control)
  try {
    const agent = await openAgent(deps, session)
    const { last } = await eventLog.head(bcId, control.signal)
    session.turnFrom = last
    void tailCommands(
      eventLog,
      bcId,
      last,
      (command) => onCommand(command, input, control, question),
      tailSignal,
    ).catch((error: unknown) => deps.log.warn({ err: error, bc_id: bcId }, 'reading commands failed'))
    await log.write({
      type: 'turn_started',
      turnId: input.turn.turnId,
      turn: input.number,
      incarnation: session.incarnation,
      agent: session.config.agentSpec,
      ...(agent.brain && { brain: agent.brain }),
    })
    onBegin()
    const turn = agent.runTurn(
      { turnId: input.turn.turnId, prompt, continued: input.continued, ...noticeFor(session) },
      control.signal,
    )
    const capturing = captureByTimer(deps, session, control, input.turn.turnId)
    const saving = saveStatesDuringTurn(deps, session)
    try {
      for (;;) {
        const step = await turn.next()
        if (control.ended()) {
          await unwinding.done()
          return await ended(deps, control.ended()!, session, events)
        }
        if (step.done) {
          session.summary = step.value.summary ?? ''
          await capturing.stop()
          // A stop that came meanwhile did not wait for the capture.
          if (session.killed && control.ended()) return await ended(deps, control.ended()!, session, events)
          if (step.value.outcome === 'completed') return { reason: 'completed', failed: false }
          return await failed(session, events, 'agent_error', step.value.detail ?? 'The agent failed.')
        }
        control.alive()
        // Now the agent knows the call's result: a session saved earlier would make the call again, on top of its files.
        if (step.value.type === 'tool_call_completed') await saveSession(deps, session)
        await events.take(step.value)
        if (step.value.type === 'agent_question') await question.asked(step.value)
      }
    } finally {
      await capturing.stop()
      await unwinding.done()
      await saving.stop()
    }
  } catch (thrown) {
    const stop = control.ended()
    if (stop) return await ended(deps, stop, session, events)
    const error = TuttiError.from(thrown)
    if (error.code === 'aborted') throw sandboxLost('Another incarnation writes this log now.')
    if (error.code === 'internal') throw thrown
    const reason: Reason = error.detail['reason'] === 'rate_limited' ? 'rate_limited' : 'agent_error'
    return await failed(session, events, reason, error.message, error)
  } finally {
    await unwinding.done()
    question.close()
    await events.close()
    await log.flush().catch(() => 0)
  }
}

/** The agent's session in this sandbox; opened with what the last one exported. */
async function openAgent(
  deps: ActivityDeps,
  session: HostSession,
): Promise<NonNullable<HostSession['agent']>> {
  if (session.agent) return session.agent
  const { kind } = parseAgentSpec(session.config.agentSpec)
  const adapter = deps.adapters.get(kind)
  if (!adapter)
    throw new TuttiError('invalid_argument', `This worker has no agent of the kind ${kind}.`, {
      field: 'agent',
    })
  const exported = session.exported && (await deps.blobs.get(session.exported, session.controller.signal))
  session.agent = await adapter.open(
    { bcId: session.bcId, config: session.config, host: session.server, ...(exported && { exported }) },
    session.controller.signal,
  )
  return session.agent
}

function onCommand(
  command: CommandEvent,
  input: TurnInput,
  control: TurnControl,
  question: OpenQuestion,
): void {
  if (command.type === 'answer') return question.answer(command.commandId, command.questionId, command.text)
  if (command.type !== 'cancel') return
  if (command.turnId && command.turnId !== input.turn.turnId) return
  if (command.reason === 'recovering') {
    const detail = 'Another sandbox was asked for.'
    if (command.incarnation === input.incarnation)
      control.end({ kind: 'handover', reason: 'sandbox_lost', detail, why: 'requested' })
    return
  }
  control.end({ kind: 'command', reason: command.reason, detail: '' })
}

const noticeFor = ({ putBackTo }: HostSession): { readonly notice?: string } =>
  putBackTo === undefined
    ? {}
    : {
        notice: `The user has put the working directory back to an earlier state (${putBackTo}): what was done after it is gone from there, the repository included. Look at it before you go on.\n\n`,
      }

/** Captures while the agent works, so that a lost sandbox takes at most one interval of work with it. */
function captureByTimer(deps: ActivityDeps, session: HostSession, control: TurnControl, turnId: string) {
  const { captureIntervalMs, captureTimeoutMs, stopAnswerMs, log } = deps
  const pace = createCapturePace(deps.clock)
  let running: Promise<unknown> | undefined
  const timer = setInterval(() => {
    if (running || control.ended() || !pace.isDue()) return
    // At the end of a turn there is one more; at a stop there is no time for two.
    const signal = AbortSignal.any([session.controller.signal, control.signal])
    running = pace
      .run(() => session.workspace.capture(signal))
      .then(() => session.workspace.checkpointWhenDue(turnId, deps.checkpointIntervalMs, signal))
      .catch((error: unknown) => {
        if (!control.ended())
          log.warn({ err: error, bc_id: session.bcId }, 'a capture during the turn failed')
      })
      .finally(() => {
        running = undefined
      })
  }, captureIntervalMs)
  return {
    async stop() {
      clearInterval(timer)
      const limitMs = control.ended() ? stopAnswerMs : captureTimeoutMs
      if (running) await orKillSilent(deps, session, { limitMs, waitedFor: 'a capture' }, async () => running)
    },
  }
}

async function ended(
  deps: ActivityDeps,
  stop: TurnStop,
  session: HostSession,
  events: TurnEvents,
): Promise<TurnResult> {
  const { stopGraceMs, stopAnswerMs } = deps
  const { server, workspace, controller } = session
  session.stopped = true
  if (stop.kind === 'lost') {
    const limit = limitBehind(session.sandbox)
    if (limit) return { reason: 'resource_limit', failed: true, detail: limitDetail(limit) }
    throw sandboxLost(stop.detail)
  }
  const ending = { limitMs: stopGraceMs + stopAnswerMs, waitedFor: 'the end of all processes' }
  await orKillSilent(deps, session, ending, () => server.killProcesses(controller.signal)).catch(
    () => undefined,
  )
  await events.closeCalls(
    stop.kind === 'handover' ? 'interrupted' : stop.kind === 'limit' ? 'error' : 'cancelled',
  )
  if (stop.kind === 'handover') {
    const last = { limitMs: stopAnswerMs, waitedFor: 'the capture before a handover' }
    await orKillSilent(deps, session, last, () => workspace.capture(controller.signal)).catch(() => undefined)
    await session.log.flush()
    session.leaves = stop.why
    throw sandboxLost(stop.detail, stop.why ?? 'handover')
  }
  return { reason: stop.reason, failed: stop.kind === 'limit', ...(stop.detail && { detail: stop.detail }) }
}

/** A capture fails by what the agent has done to its sandbox: that is no failure of ours, and another sandbox may do better. */
function failedCapture(thrown: unknown): never {
  const error = TuttiError.from(thrown)
  if (error.code === 'internal') throw sandboxLost(`The workspace could not be captured. ${error.message}`)
  throw error
}

/**
 * A turn that was ended has the grace and a moment to let go of its sandbox: an agent server that is stopped, or busy for ever, must
 * not keep the turn. `done` says that it has let go.
 */
function killWhenStuck(deps: ActivityDeps, session: HostSession, control: TurnControl) {
  const deadline = createDeadline(deps, session, 'the end of the turn')
  const onEnd = () => {
    if (control.ended()?.kind !== 'lost') deadline.within(deps.stopGraceMs + deps.stopAnswerMs)
  }
  if (control.signal.aborted) onEnd()
  control.signal.addEventListener('abort', onEnd, { once: true })
  return {
    async done() {
      control.signal.removeEventListener('abort', onEnd)
      await deadline.done()
    },
  }
}

async function failed(
  session: HostSession,
  events: TurnEvents,
  reason: Reason,
  detail: string,
  error?: TuttiError,
): Promise<TurnResult> {
  await events.closeCalls('error')
  const limit = limitBehind(session.sandbox, error)
  if (limit) return { reason: 'resource_limit', failed: true, detail: limitDetail(limit) }
  session.summary ||= detail
  return { reason, failed: true, detail: detail.slice(0, 1024) }
}
