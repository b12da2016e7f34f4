import { TuttiError } from '@tutti/core'
import type { TreeFile } from './port.ts'
import { checkHash } from './ref-name.ts'
import type { GitRunner } from './run-git.ts'
import { isContentMode } from './tree-mode.ts'

/** All contents of a large repository, at the speed of whoever reads them, in milliseconds. */
const limitMs = 30 * 60_000

/**
 * Every file and link of a commit, or those of some paths, with its bytes as they are stored, in the order of their paths; submodules have none. Two processes
 * for all of them. A content that is not read to its end is skipped when the next file is asked for.
 */
export async function* treeFiles(
  git: GitRunner,
  gitDir: string,
  commit: string,
  signal: AbortSignal,
  only: (path: Uint8Array) => boolean = () => true,
): AsyncGenerator<TreeFile> {
  const lost = (what: string, cause?: unknown) =>
    new TuttiError('data_loss', `Of commit ${commit} the mirror lacks ${what}.`, { commit }, cause)
  /** git could read, and judged: what the host lacks has a code of its own. */
  const judged = (thrown: unknown, what: string) =>
    thrown instanceof TuttiError && thrown.code === 'internal' ? lost(what, thrown) : thrown
  const listing = await git
    .bytes(['ls-tree', '-r', '-z', '-l', checkHash(commit, 'commit')], {
      gitDir,
      signal,
      maxBytes: 512 << 20,
    })
    .catch((thrown: unknown) => {
      throw judged(thrown, 'itself or a folder')
    })
  const entries = [...entriesIn(listing)].filter(({ path }) => only(path))
  if (entries.length === 0) return
  const input = Buffer.from(entries.map(({ oid }) => `${oid}\n`).join(''))
  const output = createByteReader(
    git.stream(['cat-file', '--batch'], { gitDir, signal, input, timeoutMs: limitMs }),
    (thrown) => judged(thrown, 'contents'),
  )
  try {
    for (const { path, mode, size } of entries) {
      const header = await output.line()
      if (!header.endsWith(` blob ${size}`)) throw lost(`the content of ${path.toString()}`)
      yield { path, mode, size, content: output.bytes(size) }
      await output.rest()
      await output.line()
    }
  } finally {
    await output.close()
  }
}

/** The size of what git cannot read is no number. */
function* entriesIn(listing: Buffer) {
  for (const line of listing.toString('latin1').split('\0')) {
    const [, mode = '', oid = '', size = '', path = ''] =
      /^(\d{6}) blob ([0-9a-f]+) +(\d+|BAD)\t([^]*)$/.exec(line) ?? []
    if (isContentMode(mode)) yield { path: Buffer.from(path, 'latin1'), mode, oid, size: Number(size) }
  }
}

/** Lines and counted bytes of a stream, one after the other. */
function createByteReader(stream: AsyncGenerator<Uint8Array>, judged: (thrown: unknown) => unknown) {
  let rest: Buffer = Buffer.alloc(0)
  /** Of the bytes that were asked for. */
  let left = 0
  const more = async () => {
    const next = await stream.next().catch((thrown: unknown) => {
      throw judged(thrown)
    })
    if (next.done) throw new TuttiError('data_loss', 'git ended before it had given everything.')
    rest = rest.length === 0 ? Buffer.from(next.value) : Buffer.concat([rest, next.value])
  }
  async function* chunks(): AsyncGenerator<Uint8Array> {
    while (left > 0) {
      if (rest.length === 0) await more()
      const chunk = rest.subarray(0, left)
      rest = rest.subarray(chunk.length)
      left -= chunk.length
      yield chunk
    }
  }
  return {
    async line(): Promise<string> {
      for (;;) {
        const end = rest.indexOf(10)
        if (end >= 0) {
          const line = rest.subarray(0, end).toString('latin1')
          rest = rest.subarray(end + 1)
          return line
        }
        await more()
      }
    },
    /** So many bytes; {@link rest} reads those that nobody took. */
    bytes(count: number): AsyncGenerator<Uint8Array> {
      left = count
      return chunks()
    },
    async rest() {
      for await (const _ of chunks()) void _
    },
    async close() {
      await stream.return(undefined)
    },
  }
}
