import { createHash } from 'node:crypto'
import type { BlobId } from '@tutti/core'
import { decodeRunEvent, type RunEvent } from '@tutti/protocol'
import type { ArchivedRecord } from '../event-log/port.ts'
import type { LogAbout } from './log-about.ts'
import type { RebuildDeps } from './rebuild-logs.ts'

const blobIds = /sha256_[0-9a-f]{64}/g

/**
 * Who may read which blob, as events and rows of our own name them. What an agent has said may name somebody else's: that is kept, and
 * nobody's.
 */
export async function restoreBlobRefs(
  { catalog, blobs }: Pick<RebuildDeps, 'catalog' | 'blobs'>,
  { owner, about, records }: { owner: string; about: LogAbout; records: readonly ArchivedRecord[] },
  signal: AbortSignal,
): Promise<void> {
  const used = new Set<BlobId>()
  const kept = new Set<BlobId>()
  const said = new Set<BlobId>()
  const take = (text: string, into: Set<BlobId>) => {
    for (const [id] of text.matchAll(blobIds)) into.add(id as BlobId)
  }
  for (const record of records) {
    const event = readable(record)
    switch (event?.type) {
      case 'file_change':
      case 'file_sync':
        if (event.hash) used.add(event.hash)
        break
      case 'session_saved':
      case 'state_saved':
        used.add(event.blobId)
        break
      case 'git_state':
        kept.add(event.pack)
        break
      case 'user_message':
        if (event.blobId) kept.add(event.blobId)
        // A prompt is a blob also where its text is in the event.
        if (event.text !== undefined)
          kept.add(`sha256_${createHash('sha256').update(event.text).digest('hex')}`)
        break
      default:
        take(record.body, said)
    }
  }
  take(JSON.stringify(about.row), kept)
  // An ensemble's names the prompt of its agents.
  const config = await blobs.get(about.row.configBlobId, signal).catch(() => undefined)
  if (config) take(Buffer.from(config).toString('utf8'), kept)
  const { blobRefs } = catalog
  await blobRefs.use(owner, [...used], signal)
  await blobRefs.add(owner, [...kept], signal)
  await blobRefs.add('', [...said], signal)
}

function readable(record: ArchivedRecord): RunEvent | undefined {
  try {
    return decodeRunEvent(record)
  } catch {
    return undefined
  }
}
