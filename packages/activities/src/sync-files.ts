import { changePath } from '@tutti/workspace'
import { changeOfEvent, pathFields, type FileSync } from '@tutti/workspace/log'
import { tailEvents } from './command-tail.ts'
import type { ActivityDeps } from './deps.ts'
import type { HostSession } from './sessions.ts'

/** Between two tries to write the same into a sandbox, in milliseconds. */
const retryMs = 1000

/**
 * Writes changes of the user's into a session's sandbox, and notes that its agent has to be told. Whatever the sandbox could not have is tried
 * again.
 */
export async function syncFiles(
  session: HostSession,
  synced: readonly FileSync[],
  signal: AbortSignal,
): Promise<void> {
  const written = await session.workspace.sync(synced, signal)
  for (const { change } of written) session.untold.add(pathFields(changePath(change)).path)
}

/**
 * Brings what the user changes into the sandbox of a session while it lives, also between turns, from this position of the log on (seed
 * 003). What cannot be written now is tried again: until then the log has it, and the next sandbox gets it.
 */
export function followFileSyncs(deps: ActivityDeps, session: HostSession, from: number): void {
  const { eventLog, clock, log } = deps
  const { bcId, server, controller } = session
  const over = new AbortController()
  const signal = AbortSignal.any([controller.signal, over.signal])
  void server.lost.then(() => over.abort())
  const checkpoint = () =>
    session.workspace
      .checkpointWhenDue(session.turnId ?? '', 0, signal)
      .catch((error: unknown) =>
        log.warn({ err: error, bc_id: bcId }, 'a checkpoint of what the user has changed failed'),
      )
  const write = async (synced: readonly FileSync[]) => {
    for (;;) {
      try {
        await syncFiles(session, synced, signal)
        // Between turns nobody else takes it into a checkpoint, and what is delivered is one.
        if (!session.inTurn) await checkpoint()
        return
      } catch (error) {
        if (signal.aborted) return
        log.warn({ err: error, bc_id: bcId }, 'writing what the user has changed failed')
        await clock.sleep(retryMs, signal).catch(() => undefined)
      }
    }
  }
  void tailEvents(
    eventLog,
    bcId,
    ['file_sync'],
    from,
    (events) => write(events.map((event) => ({ commandId: event.commandId, change: changeOfEvent(event) }))),
    signal,
  ).catch((error: unknown) => log.warn({ err: error, bc_id: bcId }, 'reading what the user changes failed'))
}
