import type { Archive, BlobStore } from '@tutti/blob-store'
import { ifFound, TuttiError, type BlobId, type Clock, type LogId } from '@tutti/core'
import { decodeSegment } from '@tutti/protocol/wire'
import type { Catalog } from '../catalog/port.ts'
import type { ArchivedRecord, EventLog } from '../event-log/port.ts'
import type { LogAbout } from './log-about.ts'
import { restoreBlobRefs } from './restore-blob-refs.ts'
import { restoreRows } from './restore-rows.ts'
import { segmentPlace, type SegmentPlace } from './segment-name.ts'

export interface RebuildDeps {
  readonly eventLog: EventLog
  readonly catalog: Catalog
  readonly archive: Archive
  readonly blobs: BlobStore
  readonly clock: Clock
}

export interface RebuiltLog {
  readonly log: LogId
  /** The log was whole already. */
  readonly there: boolean
  /** Position of its last record. */
  readonly last: number
  /** Nothing of it could be had: there is no such agent or ensemble. */
  readonly absent?: true
  /** Why the rest of it, or all, could not be had. */
  readonly problem?: string
}

/**
 * Makes agents and ensembles that the database does not have again from the archive and the blobs alone (decision 0083): their logs up to the last sealed
 * segment, their rows, and who may read which blob. Nobody else may work with the database meanwhile. Running it twice is running it once, also
 * when the first one was killed.
 */
export async function* rebuildLogs(deps: RebuildDeps, signal: AbortSignal): AsyncGenerator<RebuiltLog> {
  const { archive, blobs, catalog } = deps
  let current: SegmentPlace[] = []
  const places = async function* () {
    for await (const name of archive.list('logs/', signal)) {
      const place = segmentPlace(name)
      if (place) yield place
    }
  }
  for await (const place of places()) {
    if (current[0] && current[0].log !== place.log) {
      yield await rebuildLog(deps, current, signal)
      current = []
    }
    current.push(place)
  }
  if (current.length > 0) yield await rebuildLog(deps, current, signal)
  // What a log names only in what its agent has said is young for now: nothing shall go because of a loss.
  let page: BlobId[] = []
  for await (const { id } of blobs.list(signal)) {
    page.push(id)
    if (page.length < 1000) continue
    await catalog.blobRefs.use('', page, signal)
    page = []
  }
  await catalog.blobRefs.use('', page, signal)
}

async function rebuildLog(
  deps: RebuildDeps,
  places: readonly SegmentPlace[],
  signal: AbortSignal,
): Promise<RebuiltLog> {
  const { archive, eventLog } = deps
  const { log } = places[0]!
  const before = (await ifFound(eventLog.head(log, signal)))?.last
  const end = Math.max(...places.map(({ last }) => last))
  let last = before ?? 0
  let about: LogAbout | undefined
  let owner = ''
  let problem: string | undefined
  const records: ArchivedRecord[] = []
  try {
    for (const place of places) {
      const chunks = await Array.fromAsync(archive.stream(place.name, signal))
      const segment = decodeSegment(Buffer.concat(chunks).toString('utf8'))
      if (segment.log !== log) throw new TuttiError('data_loss', `${place.name} is of another log.`)
      if (place.first > Math.max(last, records.at(-1)?.sequence ?? 0) + 1)
        throw new TuttiError(
          'data_loss',
          `Its segment from ${last + 1} to ${place.first - 1} is missing. Put it back into the archive, then rebuild again.`,
        )
      owner = segment.owner
      about = segment.about as LogAbout
      await eventLog.create(log, owner, signal)
      await eventLog.restoreSegment(log, segment.records, signal)
      records.push(...segment.records.filter(({ sequence }) => sequence > (records.at(-1)?.sequence ?? 0)))
      last = Math.max(last, place.last)
    }
  } catch (error) {
    if (signal.aborted) throw error
    problem = TuttiError.from(error).message
  }
  if (about) {
    await restoreBlobRefs(deps, { owner, about, records }, signal)
    await restoreRows(deps, { log, owner, about, records }, signal)
  }
  const isAbsent = before === undefined && !about
  return {
    log,
    there: before !== undefined && before >= end,
    ...(isAbsent && { absent: true }),
    last,
    ...(problem && { problem }),
  }
}
