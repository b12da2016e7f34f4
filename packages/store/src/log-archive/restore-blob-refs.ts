import { createHash } from 'node:crypto'
import type { BlobStore } from '@tutti/blob-store'
import { isBlobId, type BlobId, type EnsembleConfig } from '@tutti/core'
import { decodeRunEvent, type RunEvent } from '@tutti/protocol'
import type { EnsembleRow } from '../catalog/port.ts'
import type { ArchivedRecord } from '../event-log/port.ts'
import type { LogAbout } from './log-about.ts'
import type { RebuildDeps } from './rebuild-logs.ts'

const blobIds = /sha256_[0-9a-f]{64}/g

/**
 * Who may read which blob, as events and rows of our own name them in the fields that are for it. What an agent has said may name somebody
 * else's: that is kept, and nobody's. A hash in a title or in a setting means nothing.
 */
export async function restoreBlobRefs(
  { catalog, blobs }: Pick<RebuildDeps, 'catalog' | 'blobs'>,
  { owner, about, records }: { owner: string; about: LogAbout; records: readonly ArchivedRecord[] },
  signal: AbortSignal,
): Promise<void> {
  const used = new Set<BlobId>()
  const kept = new Set<BlobId>()
  const said = new Set<BlobId>()
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
        for (const [id] of record.body.matchAll(blobIds)) said.add(id as BlobId)
    }
  }
  kept.add(about.row.configBlobId)
  if (about.kind === 'agent') {
    const { state, savedState } = about.row
    for (const turn of [...state.queue, ...(state.current ? [state.current] : [])])
      kept.add(turn.promptBlobId)
    if (savedState) used.add(savedState.blobId)
  } else {
    if (about.row.resultBlobId) kept.add(about.row.resultBlobId)
    const prompt = await promptOf(blobs, about.row, signal)
    if (prompt) kept.add(prompt)
  }
  const { blobRefs } = catalog
  await blobRefs.use(owner, [...used], signal)
  await blobRefs.add(owner, [...kept], signal)
  await blobRefs.add('', [...said], signal)
}

/** The prompt of an ensemble's agents; undefined when its configuration cannot be had. */
async function promptOf(
  blobs: BlobStore,
  { configBlobId }: EnsembleRow,
  signal: AbortSignal,
): Promise<BlobId | undefined> {
  try {
    const config = Buffer.from(await blobs.get(configBlobId, signal)).toString('utf8')
    const { promptBlobId } = JSON.parse(config) as Partial<EnsembleConfig>
    return promptBlobId !== undefined && isBlobId(promptBlobId) ? promptBlobId : undefined
  } catch (error) {
    if (signal.aborted) throw error
    return undefined
  }
}

function readable(record: ArchivedRecord): RunEvent | undefined {
  try {
    return decodeRunEvent(record)
  } catch {
    return undefined
  }
}
