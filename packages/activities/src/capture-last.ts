import type { ActivityDeps } from './deps.ts'
import { sandboxLost } from './fail.ts'
import { createDeadline } from './kill-silent.ts'
import type { HostSession } from './sessions.ts'
import { tailCommands } from './command-tail.ts'

export interface LastCapture {
  /** A stop came meanwhile and won: there is what was captured until then, and no sandbox any more. */
  readonly cut: boolean
}

/**
 * The last capture of a turn. It has `captureTimeoutMs`, and `stopAnswerMs` once the turn is stopped or the worker drains, also when
 * that happens meanwhile; then the sandbox is killed. Of a sandbox that ended by itself or was killed at a stop, what was captured before is all
 * that there is.
 *
 * @throws ApplicationFailure `sandbox_lost` when the sandbox is gone for another reason.
 */
export async function captureLast(
  deps: ActivityDeps,
  session: HostSession,
  turnId: string,
): Promise<LastCapture> {
  const { captureTimeoutMs, stopAnswerMs, draining, eventLog, log } = deps
  const { bcId, workspace, controller, sandbox } = session
  if (session.killed && session.stopped) return { cut: false }
  let cut = false
  const deadline = createDeadline(deps, session, 'the last capture')
  deadline.within(session.stopped ? stopAnswerMs : captureTimeoutMs)
  const hurry = () => {
    if (cut || session.stopped) return
    cut = true
    deadline.within(stopAnswerMs)
  }
  if (draining.aborted) hurry()
  draining.addEventListener('abort', hurry, { once: true })
  const done = new AbortController()
  // Most captures are over before anybody need listen for a stop.
  const listening = setTimeout(() => {
    const onCommand: Parameters<typeof tailCommands>[3] = (command) => {
      if (command.type !== 'cancel' || (command.turnId && command.turnId !== turnId)) return
      // A recovery that was asked for means one sandbox; this may be its answer.
      if (command.incarnation === undefined || command.incarnation === session.incarnation) hurry()
    }
    void tailCommands(eventLog, bcId, session.turnFrom, onCommand, done.signal).catch((error: unknown) =>
      log.warn({ err: error, bc_id: bcId }, 'reading commands failed'),
    )
  }, stopAnswerMs)
  try {
    await workspace.capture(controller.signal)
    return { cut: false }
  } catch (error) {
    if (session.killed && (cut || session.stopped)) return { cut }
    if (sandbox.limitHit()) return { cut: false }
    log.warn({ err: error, bc_id: bcId }, 'the last capture failed')
    throw sandboxLost('The sandbox ended before its last files could be read.')
  } finally {
    clearTimeout(listening)
    done.abort()
    draining.removeEventListener('abort', hurry)
    await deadline.done()
  }
}
