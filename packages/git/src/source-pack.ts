import type { GitRunner } from './run-git.ts'

/** A sandbox may take it as slowly as it likes, within its own time to get ready. */
const transferTimeoutMs = 30 * 60_000

/**
 * The objects of `commit` and of its history that the source's store does not have, as one pack. Nobody else's are in it: an
 * agent's checkpoints have only each other and their base as parents, a combined commit only the base.
 *
 * @param without a commit that the source's store has: its history is not looked through.
 */
export function packBeyondSource(
  git: GitRunner,
  mirror: string,
  commit: string,
  without: string | undefined,
  signal: AbortSignal,
): AsyncIterable<Uint8Array> {
  const revisions = without === undefined ? [commit] : [commit, `^${without}`]
  // `--local` leaves out what lies in the source's store. One thread and a bounded window: a worker packs for many sandboxes.
  const options = ['--revs', '--local', '--stdout', '--quiet', '--threads=1', '--window-memory=32m']
  return git.stream(['pack-objects', ...options], {
    gitDir: mirror,
    signal,
    input: Buffer.from(`${revisions.join('\n')}\n`),
    timeoutMs: transferTimeoutMs,
  })
}
