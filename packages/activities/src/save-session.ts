import { blobIdOf } from '@tutti/blob-store'
import type { ActivityDeps } from './deps.ts'
import { createOwnedBlobs } from './owned-blobs.ts'
import type { HostSession } from './sessions.ts'

/** Stores what the agent exports of its session, at the end of each tool call and turn; does nothing when it has not changed. */
export async function saveSession({ blobs, catalog }: ActivityDeps, session: HostSession): Promise<void> {
  const bytes = await session.agent?.exportSession(session.controller.signal)
  if (!bytes || bytes.length === 0) return
  if (blobIdOf(bytes) === session.exported) return
  const { owner, controller } = session
  const own = createOwnedBlobs(blobs, (ids, signal) => catalog.blobRefs.use(owner, ids, signal))
  const blobId = await own.put(bytes, controller.signal)
  session.exported = blobId
  await session.log.write({ type: 'session_saved', blobId })
}
