import { randomUUID } from 'node:crypto'
import { mkdir, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { TuttiError } from '@tutti/core'
import { isAbandoned, passingName } from '@tutti/processes'
import { fsckComplaint } from './push.ts'
import type { GitOutput, GitRunner } from './run-git.ts'

/** A pack of gigabytes on a slow disk, in milliseconds. */
const limitMs = 30 * 60_000
/** One object in memory: no file of an agent's is larger. */
const maxObject = '1g'
/** A folder of this age is of somebody who died, also where its name does not tell. */
const abandonedMs = 2 * limitMs
const kind = 'check'
const checksIn = (mirror: string): string => join(mirror, 'checks')

/** A folder of objects for as long as something is looked at; whoever makes it removes it, or the sweep does. */
export const checkFolder = (mirror: string): string =>
  join(checksIn(mirror), `${passingName(kind)}-${randomUUID()}`)

/** Opens a pack from its start, each time. */
export type OpenPack = () => AsyncIterable<Uint8Array>

/** What a pack is checked beside. Nothing of it is looked at again, but for what git cannot judge the new pack without. */
export interface PackSurroundings {
  /** The source's own objects, which every sandbox has. */
  readonly sourceObjects: string
  /** Packs that were checked before, each after those that it builds on. */
  readonly onto: readonly OpenPack[]
}

/**
 * Reads a pack to its end and has git look at each of its objects. Nothing of it gets into the mirror: other agents' sandboxes read from there.
 *
 * @throws TuttiError `failed_precondition` with what git finds wrong.
 */
export async function checkPack(
  git: GitRunner,
  mirror: string,
  pack: OpenPack,
  { sourceObjects, onto }: PackSurroundings,
  signal: AbortSignal,
): Promise<void> {
  const objects = checkFolder(mirror)
  await mkdir(objects, { recursive: true })
  const index = (open: OpenPack, ...options: string[]) =>
    git.run(['index-pack', '--stdin', '--threads=1', ...options], {
      gitDir: mirror,
      env: {
        GIT_OBJECT_DIRECTORY: objects,
        GIT_ALTERNATE_OBJECT_DIRECTORIES: quoted(sourceObjects),
        // A few bytes can stand for gigabytes.
        GIT_ALLOC_LIMIT: maxObject,
      },
      // It is removed again.
      config: ['core.fsync=none'],
      input: open(),
      signal,
      timeoutMs: limitMs,
    })
  try {
    let output = await index(pack, '--fsck-objects')
    if (lacksContent(output) && onto.length > 0) {
      for (const earlier of onto) await index(earlier)
      output = await index(pack, '--fsck-objects')
    }
    if (output.exitCode === 0 && !lacksContent(output)) return
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

/**
 * Whatever a tree calls `.gitmodules` or `.gitattributes` has to be read, also when it is older than the pack. git fails for attributes
 * that are not there; submodules it leaves to its caller, by their ids behind the pack's own.
 */
const lacksContent = ({ stdout, stderr }: GitOutput): boolean =>
  /: git(?:modules|attributes)Missing:/.test(stderr) || stdout.toString('latin1').trim().includes('\n')

/** In a list of folders a colon parts them, unless they are quoted. */
export const quoted = (path: string): string => `"${path.replace(/["\\]/g, '\\$&')}"`

/** Removes the folders of checks whose process is dead. For the sweep of mirrors. */
export async function removeAbandonedChecks(mirror: string): Promise<void> {
  const folder = checksIn(mirror)
  for (const name of await readdir(folder).catch(() => [])) {
    const path = join(folder, name)
    const stats = await stat(path).catch(() => undefined)
    const isOld = stats !== undefined && Date.now() - stats.mtimeMs > abandonedMs
    if (isOld || isAbandoned(kind, name)) await rm(path, { recursive: true, force: true })
  }
}
