import { readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { removeAbandonedChecks } from './check-pack.ts'
import { exists } from './mirror-stores.ts'

/** No git of ours runs for longer than an hour; a file that it would still write to is younger. */
const abandonedMs = 24 * 60 * 60_000
/** What git calls files that it has not finished: packs, objects, folders of a transfer, and reports of a fast-import that died. */
const unfinished = /^(?:tmp_|\.tmp-|fast_import_crash_)/

export interface SweepOptions {
  /** Locks the mirror of that path for the time of `work`; does nothing when somebody else has it. */
  readonly withLock: (mirror: string, work: () => Promise<void>) => Promise<void>
  /** Whether nobody needs the mirror of that path any more; asked with its lock held. */
  readonly isUnused: (mirror: string) => Promise<boolean>
}

/**
 * Removes mirrors that nobody needs, and what killed processes left in the others: folders of checks, half-made repositories, and what
 * git had not finished.
 *
 * @returns paths of the mirrors that were removed.
 */
export async function sweepMirrors(root: string, { withLock, isUnused }: SweepOptions): Promise<string[]> {
  const removed: string[] = []
  const names = await namesIn(root)
  const mirrors = new Set(
    names.flatMap((name) => /^([0-9a-f]{32})(?:\.source)?\.git(?:\.new)?$/.exec(name)?.[1] ?? []),
  )
  for (const name of mirrors) {
    const mirror = join(root, `${name}.git`)
    const source = join(root, `${name}.source.git`)
    const halfMade = [`${mirror}.new`, `${source}.new`].some((path) =>
      names.includes(path.slice(root.length + 1)),
    )
    // Asked twice: most are needed, and a lock is held while a source is fetched.
    if (halfMade || (await isUnused(mirror))) {
      await withLock(mirror, async () => {
        for (const path of [mirror, source]) await rm(`${path}.new`, { recursive: true, force: true })
        // Another one may have swept meanwhile.
        if (!(await exists(mirror)) || !(await isUnused(mirror))) return
        for (const path of [mirror, source]) await rm(path, { recursive: true, force: true })
        removed.push(mirror)
      })
    }
    await removeAbandonedChecks(mirror)
    for (const path of [mirror, source]) await removeUnfinished(path)
  }
  return removed
}

async function removeUnfinished(repository: string): Promise<void> {
  const objects = join(repository, 'objects')
  const folders = (await namesIn(objects)).filter((name) => /^(?:pack|[0-9a-f]{2})$/.test(name))
  for (const folder of [repository, objects, ...folders.map((name) => join(objects, name))]) {
    for (const name of await namesIn(folder)) {
      if (!unfinished.test(name)) continue
      const path = join(folder, name)
      const stats = await stat(path).catch(() => undefined)
      if (stats && Date.now() - stats.mtimeMs > abandonedMs) await rm(path, { recursive: true, force: true })
    }
  }
}

const namesIn = (folder: string): Promise<string[]> => readdir(folder).catch(() => [])
