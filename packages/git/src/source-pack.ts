import type { GitRunner } from './run-git.ts'

/** A sandbox may take it as slowly as it likes, within its own time to get ready. */
const transferTimeoutMs = 30 * 60_000

/**
 * The objects of a commit and of its history, or of a tree, that the source's store does not have, as one pack. Nobody else's are in it:
 * an agent's checkpoints have only each other and their base as parents, a combined commit only the base.
 *
 * @param without of the same kind, which the source's store has: what belongs to it is not looked through.
 */
export function packBeyondSource(
  git: GitRunner,
  mirror: string,
  wanted: string,
  without: string | undefined,
  signal: AbortSignal,
): AsyncIterable<Uint8Array> {
  const revisions = without === undefined ? [wanted] : [wanted, `^${without}`]
  // `--local` leaves out what lies in the source's store. One thread and a bounded window: a worker packs for many sandboxes.
  const options = ['--revs', '--local', '--stdout', '--quiet', '--threads=1', '--window-memory=32m']
  return git.stream(['pack-objects', ...options], {
    gitDir: mirror,
    signal,
    input: Buffer.from(`${revisions.join('\n')}\n`),
    timeoutMs: transferTimeoutMs,
  })
}
