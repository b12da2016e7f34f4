import { createCapturePace } from './capture-pace.ts'
import type { ActivityDeps } from './deps.ts'
import type { HostSession } from './sessions.ts'

/**
 * Captures what processes that an agent left behind write between its turns, and once more when the last of them has ended, also when
 * that was before anybody looked. Stops with the session.
 */
export function captureBetweenTurns(deps: ActivityDeps, session: HostSession): void {
  const { workspace, server, controller } = session
  const { signal } = controller
  const pace = createCapturePace(deps.clock)
  let isLooking = false
  const look = async () => {
    const isBusy = await server.hasProcesses(signal)
    if (session.inTurn || (session.quiet && !isBusy)) return
    // Before the capture: what begins meanwhile says that it is not.
    session.quiet = !isBusy
    try {
      await pace.run(() => workspace.capture(signal))
    } catch (error) {
      session.quiet = false
      throw error
    }
    if (session.turnId) await workspace.checkpointWhenDue(session.turnId, deps.checkpointIntervalMs, signal)
  }
  const timer = setInterval(() => {
    if (isLooking || session.inTurn || session.killed || !pace.isDue()) return
    isLooking = true
    look()
      .catch((error: unknown) => {
        if (!signal.aborted)
          deps.log.warn({ err: error, bc_id: session.bcId }, 'a capture between turns failed')
      })
      .finally(() => {
        isLooking = false
      })
  }, deps.captureIntervalMs)
  timer.unref()
  const stop = () => clearInterval(timer)
  signal.addEventListener('abort', stop, { once: true })
  void server.lost.then(stop)
}
