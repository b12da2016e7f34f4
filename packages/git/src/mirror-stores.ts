import { access, mkdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { localUploadPack } from './hardened.ts'
import type { GitRunner } from './run-git.ts'
import { sourceRefs } from './source.ts'

/** The two bare repositories of one location, side by side (decision 0073). Nothing is ever pruned from either. */
export interface MirrorStores {
  /** Refs and objects of agents and of synthesis; reads the objects of `source` as its own. */
  readonly mirror: string
  /** Only what was fetched from the source: the one that sandboxes may read. */
  readonly source: string
}

/** Whether both are there and joined. */
export const areJoined = async ({ mirror, source }: MirrorStores): Promise<boolean> =>
  (await exists(alternatesOf(mirror))) && (await exists(source))

/**
 * Makes what is missing of the two and joins them. A mirror of before they were apart hands over its copy of the source, which
 * needs no network; what agents made stays where it is. Call it with the lock held.
 */
export async function makeStores(
  git: GitRunner,
  stores: MirrorStores,
  address: string,
  isSha256: boolean,
  signal: AbortSignal,
): Promise<void> {
  const { mirror, source } = stores
  if (await areJoined(stores)) return
  const hasMirror = await exists(mirror)
  const format = (hasMirror ? await isSha256Repository(mirror) : isSha256) ? 'sha256' : 'sha1'
  if (!(await exists(source))) {
    await makeRepository(git, source, format, `Tutti's copy of ${address}\n`, signal, async (gitDir) => {
      if (hasMirror) await fetchOldCopy(git, gitDir, mirror, signal)
    })
  }
  if (!hasMirror) await makeRepository(git, mirror, format, `Tutti's mirror of ${address}\n`, signal)
  await joinStores(stores)
}

/** Appears under its name complete, or not at all. */
async function makeRepository(
  git: GitRunner,
  path: string,
  format: 'sha1' | 'sha256',
  description: string,
  signal: AbortSignal,
  fill?: (gitDir: string) => Promise<void>,
): Promise<void> {
  // The lock is held, so what lies there is from somebody who died.
  const temporary = `${path}.new`
  await rm(temporary, { recursive: true, force: true })
  try {
    const options = ['--quiet', '--bare', '--template=', `--object-format=${format}`]
    await git.bytes(['init', ...options, '--', temporary], { signal })
    await writeFile(join(temporary, 'description'), description)
    await fill?.(temporary)
    await rename(temporary, path)
  } finally {
    await rm(temporary, { recursive: true, force: true })
  }
}

const copyTimeoutMs = 30 * 60_000

async function fetchOldCopy(
  git: GitRunner,
  gitDir: string,
  mirror: string,
  signal: AbortSignal,
): Promise<void> {
  const options = [
    '--quiet',
    '--no-tags',
    '--update-shallow',
    '--no-write-fetch-head',
    '--no-auto-maintenance',
  ]
  const refs = `+${sourceRefs}/*:${sourceRefs}/*`
  await git.bytes(['fetch', ...options, `--upload-pack=${localUploadPack}`, '--', mirror, refs], {
    gitDir,
    signal,
    protocol: 'file',
    timeoutMs: copyTimeoutMs,
  })
}

/** Paths are relative, so that the data folder can be moved. */
async function joinStores({ mirror, source }: MirrorStores): Promise<void> {
  const name = basename(source)
  // Where the history of a shallow source ends is for both the same; there is no such file for a whole one.
  const shallow = join(mirror, 'shallow')
  await rm(shallow, { force: true })
  await symlink(join('..', name, 'shallow'), shallow)
  // Last, and in one step: this file says that the two are joined.
  const alternates = alternatesOf(mirror)
  await mkdir(join(mirror, 'objects', 'info'), { recursive: true })
  await writeFile(`${alternates}.new`, `${join('..', '..', name, 'objects')}\n`, { flush: true })
  await rename(`${alternates}.new`, alternates)
}

const alternatesOf = (mirror: string): string => join(mirror, 'objects', 'info', 'alternates')

const isSha256Repository = async (gitDir: string): Promise<boolean> =>
  /^\s*objectformat\s*=\s*sha256\s*$/im.test(await readFile(join(gitDir, 'config'), 'utf8'))

export const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  )
