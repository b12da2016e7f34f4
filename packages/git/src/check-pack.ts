import { randomUUID } from 'node:crypto'
import { mkdir, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { TuttiError } from '@tutti/core'
import { fsckComplaint } from './push.ts'
import type { GitRunner } from './run-git.ts'

/** A pack of gigabytes on a slow disk, in milliseconds. */
const limitMs = 30 * 60_000
/** One object in memory: no file of an agent's is larger. */
const maxObject = '1g'
/** A folder of this age is of somebody who died. */
const abandonedMs = 2 * limitMs

/**
 * Reads a pack to its end and has git look at each of its objects. Nothing of it gets into the mirror: other agents' sandboxes read from there.
 *
 * @throws TuttiError `failed_precondition` with what git finds wrong.
 */
export async function checkPack(
  git: GitRunner,
  mirror: string,
  pack: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): Promise<void> {
  const checks = join(mirror, 'checks')
  await mkdir(checks, { recursive: true })
  await removeAbandoned(checks)
  const objects = join(checks, randomUUID())
  await mkdir(objects)
  try {
    const output = await git.run(['index-pack', '--stdin', '--fsck-objects', '--threads=1'], {
      gitDir: mirror,
      // A few bytes can stand for gigabytes.
      env: { GIT_OBJECT_DIRECTORY: objects, GIT_ALLOC_LIMIT: maxObject },
      // It is removed again.
      config: ['core.fsync=none'],
      input: pack,
      signal,
      timeoutMs: limitMs,
    })
    if (output.exitCode === 0 || onlyLacksSettings(output.stderr)) return
    const problem = fsckComplaint(output.stderr) ?? 'it cannot be read'
    const cause = new Error(output.stderr)
    throw new TuttiError(
      'failed_precondition',
      `git refuses what the agent has committed: ${problem}.`,
      {},
      cause,
    )
  } finally {
    await rm(objects, { recursive: true, force: true })
  }
}

/** Said at the end, when everything else was looked at: the blob is in the source or in an earlier pack. */
function onlyLacksSettings(stderr: string): boolean {
  const errors = stderr.split('\n').filter((line) => line.startsWith('error:'))
  return errors.length > 0 && errors.every((line) => /: (?:gitattributes|gitmodules)Missing: /.test(line))
}

async function removeAbandoned(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const path = join(folder, name)
    const stats = await stat(path).catch(() => undefined)
    if (stats && Date.now() - stats.mtimeMs > abandonedMs) await rm(path, { recursive: true, force: true })
  }
}
