import { TuttiError } from '@tutti/core'
import type { SyncState } from './sync-state.ts'

/** So few may always be deleted. */
const fewDeletions = 20
/** Deletions are over when none was sent for so long, in milliseconds: longer than a look at a large folder takes. */
const restMs = 600_000

/**
 * Asks before more than half of the files go. They are counted against what was there when the deletions began, and not against what the
 * last look left: each look in the middle of a slow `rm -r` finds only a few of them gone. Once asked, no time passes for an answer.
 *
 * @param keys what is to be deleted, and what was sent and is not in the log yet
 * @throws TuttiError `failed_precondition` when the files would be more than half
 */
export function countDeletions(state: SyncState, keys: readonly string[], nowMs: number): void {
  const begun = state.deletions()
  if (!begun || begun.lastMs + restMs < nowMs) state.change((write) => write.deletionsBegin(nowMs))
  const { before, gone } = state.deletions()!
  const counted = keys.filter((key) => state.isAtStake(key))
  const all = new Set([...gone, ...counted])
  const now = state.agreed()
  const [deleted, of] = isMuch(all.size, before) ? [all.size, before] : [keys.length, now]
  if (isMuch(deleted, of)) {
    state.change((write) => write.deletionsAt(Infinity))
    throw new TuttiError(
      'failed_precondition',
      `${deleted} of ${of} files are gone from the folder. With --allow-deletions they go from the agent's workspace too.`,
      { deleted, next: 'put them back, or the same command with --allow-deletions' },
    )
  }
  if (counted.length > 0) state.change((write) => write.deletionsAt(nowMs))
}

const isMuch = (deleted: number, of: number): boolean => deleted > Math.max(fewDeletions, of / 2)
