import type { Clock } from '@tutti/core'
import { removeGroups } from './cgroup-folder.ts'

const attempts = 100
const pauseMs = 15

/** Removes groups whose processes are dead. The kernel lets go of them a moment later than it reports them gone, so it is tried for a while. */
export async function removeEmptyGroups(
  folders: readonly string[],
  signal: AbortSignal,
  clock: Clock,
): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return removeGroups(folders)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EBUSY' || attempt === attempts) throw error
    }
    await clock.sleep(pauseMs, signal)
  }
}
