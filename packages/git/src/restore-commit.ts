import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Archive } from '@tutti/blob-store'
import { throwIfCancelled, TuttiError } from '@tutti/core'
import { letIn } from './let-in.ts'
import { packsOf } from './pack-names.ts'
import type { MirrorStores } from './mirror-stores.ts'
import { isHash } from './ref-name.ts'
import type { GitRunner } from './run-git.ts'

const transferTimeoutMs = 6 * 60 * 60_000

/** A pack that lies in a folder of its own until all are there. */
interface Fetched {
  readonly commit: string
  readonly objects: string
  /** The commit that it needs; undefined for a base, which needs nothing. */
  readonly onto: string | undefined
}

/**
 * Follows the packs of a commit down to what the mirror has, or to a base, and then lets all of them in, the oldest first: a commit
 * that a mirror has is whole. A base is the source's own and goes to its store, where sandboxes read it.
 *
 * @param anew a commit of the source: what the mirror has beyond it is not believed
 * @throws TuttiError `data_loss` when a pack is missing or damaged, `unavailable` when the archive does not answer.
 */
export async function restoreCommit(
  git: GitRunner,
  archive: Archive,
  { mirror, source }: MirrorStores,
  commit: string,
  signal: AbortSignal,
  anew?: string,
): Promise<void> {
  const folder = join(mirror, 'restores')
  // The lock is held: what lies there is from somebody who died.
  await rm(folder, { recursive: true, force: true })
  const fetched: Fetched[] = []
  const env = () => ({
    GIT_ALTERNATE_OBJECT_DIRECTORIES: fetched.map(({ objects }) => JSON.stringify(objects)).join(':'),
  })
  const succeeds = async (...args: string[]) =>
    (await git.run(args, { gitDir: mirror, env: env(), signal, timeoutMs: transferTimeoutMs })).exitCode === 0

  const isThere = async (wanted: string) =>
    (anew === undefined || wanted === anew) && (await succeeds('cat-file', '-e', `${wanted}^{tree}`))

  /** The first of the commit's packs that is whole. */
  const fetch = async (wanted: string): Promise<Fetched> => {
    for await (const name of archive.list(packsOf(wanted), signal)) {
      const onto = name.slice(packsOf(wanted).length).replace(/\.pack$/, '')
      const objects = join(folder, String(fetched.length), onto)
      await mkdir(objects, { recursive: true })
      const pack = watched(archive.stream(name, signal))
      const output = await git.run(['index-pack', '--stdin', '--threads=1'], {
        gitDir: mirror,
        env: { GIT_OBJECT_DIRECTORY: objects },
        input: pack.content,
        signal,
        timeoutMs: transferTimeoutMs,
      })
      throwIfCancelled(signal)
      // That it does not answer now does not make it lost; of ours are those that say no more than that git read no further.
      if (pack.problem && !['not_found', 'data_loss', 'internal'].includes(pack.problem.code))
        throw pack.problem
      if (output.exitCode === 0) return { commit: wanted, objects, onto: isHash(onto) ? onto : undefined }
    }
    throw lost(commit, wanted)
  }

  try {
    let at: string | undefined = commit
    while (at !== undefined && !(await isThere(at))) {
      const next: Fetched = await fetch(at)
      fetched.unshift(next)
      at = next.onto
    }
    const [oldest] = fetched
    if (!oldest) return
    const base = oldest.onto === undefined ? oldest : undefined
    // git reads every tree, and looks for every content.
    const whole = base
      ? [[`${base.commit}^{tree}`], [commit, `^${base.commit}`]]
      : [[commit, `^${oldest.onto}`]]
    for (const revisions of whole) {
      if (!(await succeeds('rev-list', '--objects', '--quiet', ...revisions)))
        throw lost(commit, oldest.commit)
    }
    if (base && !(await succeeds('rev-list', '--quiet', '--max-count=2', base.commit)))
      await cutHistory(source, base.commit)
    for (const { objects, onto } of fetched) await letIn(objects, onto === undefined ? source : mirror)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** What is read, and why it ended early: git says only that it did. */
function watched(from: AsyncIterable<Uint8Array>) {
  const read: { content: AsyncIterable<Uint8Array>; problem?: TuttiError } = { content: pass() }
  async function* pass() {
    try {
      yield* from
    } catch (error) {
      read.problem = TuttiError.from(error)
      throw error
    }
  }
  return read
}

const lost = (commit: string, lacking: string) =>
  new TuttiError(
    'data_loss',
    `The archive does not have commit ${commit}: ${lacking} is missing or damaged there. Bring back its source, or the objects that begin with ${packsOf(lacking)}.`,
    { commit, lacking },
  )

/** git looks for nothing behind a commit that is named here. Before the commit itself is there, so that nobody finds it without. */
async function cutHistory(gitDir: string, commit: string): Promise<void> {
  const path = join(gitDir, 'shallow')
  const lines = new Set((await readFile(path, 'utf8').catch(() => '')).split('\n').filter(Boolean))
  await writeFile(`${path}.new`, [...lines.add(commit)].map((line) => `${line}\n`).join(''), { flush: true })
  await rename(`${path}.new`, path)
}
