import type { ActivityDeps } from './deps.ts'
import type { HostSession } from './sessions.ts'

/**
 * Captures a changed path as soon as the sandbox hints at it, so that readers see a saved file at once and not at the next whole
 * capture. Stops with the session.
 */
export function captureHinted(
  deps: Pick<ActivityDeps, 'log' | 'watchWorkspace'>,
  session: HostSession,
): void {
  if (!deps.watchWorkspace) return
  const { workspace, server, controller } = session
  const { signal } = controller
  let isCapturing = false
  server.hints(() => {
    // At a stop there is one last capture, and no time for two.
    if (isCapturing || session.stopped || session.killed) return
    isCapturing = true
    workspace
      .captureHinted(signal)
      .catch((error: unknown) => {
        if (!signal.aborted)
          deps.log.warn({ err: error, bc_id: session.bcId }, 'a capture of a changed path failed')
      })
      .finally(() => (isCapturing = false))
  }, signal)
}
