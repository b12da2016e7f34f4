import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { TuttiError } from '@tutti/core'

const run = promisify(execFile)
/** Of everything that waits to be written, also by others, in milliseconds. */
const limitMs = 120_000

let answer: Promise<boolean> | undefined

/** Whether this machine has GNU `sync`, which can write one file system; asked once. */
export const canSyncFileSystem = (): Promise<boolean> =>
  (answer ??= syncFileSystem('/').then(
    () => true,
    () => false,
  ))

/**
 * Everything written to the file system of `path` is on the disk when this resolves: names and contents, of any number of files.
 *
 * @throws TuttiError `unavailable` when the disk fails.
 */
export async function syncFileSystem(path: string): Promise<void> {
  try {
    await run('sync', ['-f', path], { timeout: limitMs })
  } catch (cause) {
    throw new TuttiError(
      'unavailable',
      'The disk did not take what was written; look at it, then try again.',
      {},
      cause,
    )
  }
}
