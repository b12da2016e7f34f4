import { stat, unlink } from 'node:fs/promises'
import { sep } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { TuttiError, cancelledBy } from '@tutti/core'

/** A git of ours holds a lock for milliseconds; one this old belongs to a git that was killed. */
const staleMs = 5000
const pollMs = 100

/**
 * Runs git work; when it fails because of a lock file in the mirror, waits until that is gone or stale, removes it then, and
 * runs the work again. Without this one SIGKILL at the wrong moment would refuse every later checkpoint.
 */
export async function withLockRepair<T>(
  gitDir: string,
  signal: AbortSignal,
  work: () => Promise<T>,
): Promise<T> {
  const deadline = performance.now() + 3 * staleMs
  for (;;) {
    try {
      return await work()
    } catch (error) {
      const lock = lockOf(gitDir, error)
      if (lock === undefined || performance.now() > deadline) throw error
      await removeStale(lock)
      await setTimeout(pollMs, undefined, { signal }).catch(() => {
        throw cancelledBy(signal)
      })
    }
  }
}

/** The lock file that stood in the way, if it lies in this mirror. */
function lockOf(gitDir: string, error: unknown): string | undefined {
  if (!(error instanceof TuttiError) || !(error.cause instanceof Error)) return undefined
  const lock = /Unable to create '([^'\n]+\.lock)': File exists/.exec(error.cause.message)?.[1]
  return lock?.startsWith(gitDir + sep) && !lock.includes('..') ? lock : undefined
}

async function removeStale(lock: string): Promise<void> {
  const age = await stat(lock).then(
    ({ mtimeMs }) => Date.now() - mtimeMs,
    () => 0,
  )
  if (age > staleMs) await unlink(lock).catch(() => undefined)
}
