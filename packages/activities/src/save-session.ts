import type { ActivityDeps } from './deps.ts'
import type { HostSession } from './sessions.ts'

/** Stores what the agent exports of its session, at the end of each tool call and turn; does nothing when it has not changed. */
export async function saveSession({ blobs, crashPoint }: ActivityDeps, session: HostSession): Promise<void> {
  const bytes = await session.agent?.exportSession(session.controller.signal)
  if (!bytes || bytes.length === 0) return
  const blobId = await blobs.put(bytes, session.controller.signal)
  if (blobId === session.exported) return
  session.exported = blobId
  await crashPoint('turn.session', () => session.log.write({ type: 'session_saved', blobId }))
}
