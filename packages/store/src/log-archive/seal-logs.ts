import type { Archive } from '@tutti/blob-store'
import type { Clock, LogId } from '@tutti/core'
import { encodeSegment } from '@tutti/protocol/wire'
import type { Catalog } from '../catalog/port.ts'
import type { EventLog } from '../event-log/port.ts'
import { readAbout } from './log-about.ts'
import { segmentName } from './segment-name.ts'

export interface SealDeps {
  readonly eventLog: EventLog
  readonly catalog: Catalog
  readonly archive: Archive
  readonly clock: Clock
}

/** Records of a log that goes on; a still one is sealed whatever it has. */
const maxOpen = 2000

/**
 * Seals what is not in the archive yet: of logs that have been still for `stillMs` milliseconds everything, of others once they have
 * more than 2,000 open records. Sealing twice is sealing once.
 *
 * @returns how many logs there were; what fails is told to `onFailure` and left to the next time
 */
export async function sealLogs(
  deps: SealDeps,
  stillMs: number,
  onFailure: (log: LogId, error: unknown) => void,
  signal: AbortSignal,
): Promise<number> {
  const open = await deps.eventLog.listUnarchived(deps.clock.now() - stillMs, maxOpen, signal)
  for (const { log, owner } of open) {
    if (signal.aborted) break
    await sealLog(deps, log, owner, signal).catch((error: unknown) => onFailure(log, error))
  }
  return open.length
}

async function sealLog(
  { eventLog, catalog, archive }: SealDeps,
  log: LogId,
  owner: string,
  signal: AbortSignal,
): Promise<void> {
  for (let more = true; more;) {
    // Before the records: a rebuild goes by them where they are newer.
    const about = await readAbout(catalog, log, owner, signal)
    more = await eventLog.archiveSegment(
      log,
      async (records) => {
        const name = segmentName(log, records[0]!.sequence, records.at(-1)!.sequence)
        await archive.put(name, Buffer.from(encodeSegment({ log, owner, about }, records)), signal)
      },
      signal,
    )
  }
}
