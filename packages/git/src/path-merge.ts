import type { AgentId } from '@tutti/core'
import { linesOf, mergeLines, parseHunks } from './line-merge.ts'
import type { Conflict } from './port.ts'
import type { GitRunner } from './run-git.ts'
import type { TreeEntry } from './tree-diff.ts'
import type { TreeMode } from './tree-mode.ts'

/** What one attempt made of a path; `entry` is undefined when it deleted it. */
export interface PathVersion {
  readonly bcId: AgentId
  readonly entry: TreeEntry | undefined
}

/** What a path becomes: an object that is there, new bytes, or nothing. `undefined` as a whole: as in the base. */
export type PathResult =
  | { readonly entry: TreeEntry }
  | { readonly mode: TreeMode; readonly bytes: Buffer }
  | { readonly deleted: true }

export interface PathMerge {
  readonly result: PathResult | undefined
  readonly conflicts: readonly Conflict[]
}

export interface Blobs {
  read(entry: TreeEntry): Promise<Buffer>
  /** Text of `git diff -U0` between two blobs. */
  hunks(from: TreeEntry, to: TreeEntry): Promise<string>
}

const maxMergeBytes = 8 << 20
const maxShownBytes = 4 << 10

/** Joins what several attempts made of one path; the rules stand in decision 0031. `path` is for the report. */
export async function mergePath(
  path: string,
  base: TreeEntry | undefined,
  versions: readonly PathVersion[],
  blobs: Blobs,
): Promise<PathMerge> {
  const first = versions[0]!.entry
  const conflict = async (kind: Conflict['kind']): Promise<Conflict> => ({
    path,
    kind,
    line: 1,
    base: await show(base, blobs),
    versions: await Promise.all(
      versions.map(async ({ bcId, entry }) => ({ bcId, text: await show(entry, blobs) })),
    ),
  })
  if (versions.every(({ entry }) => isSame(entry, first))) {
    return { result: first ? { entry: first } : { deleted: true }, conflicts: [] }
  }
  const entries = versions.flatMap(({ entry }) => (entry ? [entry] : []))
  if (!base) {
    const sameBytes = entries.every(({ oid }) => oid === first?.oid)
    const kind = sameBytes && entries.every(isFile) ? 'mode' : 'add_add'
    return { result: first && { entry: first }, conflicts: [await conflict(kind)] }
  }
  if (entries.length < versions.length)
    return { result: undefined, conflicts: [await conflict('modify_delete')] }
  if (![base, ...entries].every(isFile)) {
    const links = [base, ...entries].every(({ mode }) => mode === symlink)
    return { result: undefined, conflicts: [await conflict(links ? 'content' : 'type')] }
  }
  // A file has two modes, so attempts that change it change it alike.
  const mode = entries.find((entry) => entry.mode !== base.mode)?.mode ?? base.mode
  const changed = versions.flatMap(({ bcId, entry }) =>
    entry && entry.oid !== base.oid ? [{ bcId, entry }] : [],
  )
  if (changed.every(({ entry }) => entry.oid === changed[0]!.entry.oid)) {
    return { result: { entry: { mode, oid: changed[0]?.entry.oid ?? base.oid } }, conflicts: [] }
  }
  return await mergeTexts(path, base, mode, changed, blobs, () => conflict('binary'))
}

async function mergeTexts(
  path: string,
  base: TreeEntry,
  mode: TreeMode,
  changed: readonly { readonly bcId: AgentId; readonly entry: TreeEntry }[],
  blobs: Blobs,
  binary: () => Promise<Conflict>,
): Promise<PathMerge> {
  const baseBytes = await blobs.read(base)
  const bytes = await Promise.all(changed.map(({ entry }) => blobs.read(entry)))
  if ([baseBytes, ...bytes].some(isBinary)) {
    return { result: { entry: { mode, oid: base.oid } }, conflicts: [await binary()] }
  }
  const versions = await Promise.all(
    changed.map(async ({ bcId, entry }, index) => ({
      name: bcId,
      hunks: parseHunks(await blobs.hunks(base, entry), linesOf(bytes[index]!)),
    })),
  )
  const { text, overlaps } = mergeLines(linesOf(baseBytes), versions)
  const conflicts = overlaps.map((overlap): Conflict => ({
    path,
    kind: 'content',
    line: overlap.start + 1,
    base: shown(Buffer.from(overlap.base, 'latin1')),
    versions: overlap.versions.map(({ name, text: own }) => ({
      bcId: name,
      text: shown(Buffer.from(own, 'latin1')),
    })),
  }))
  return { result: { mode, bytes: Buffer.from(text, 'latin1') }, conflicts }
}

const symlink = '120000'
const isFile = ({ mode }: TreeEntry): boolean => mode === '100644' || mode === '100755'
const isSame = (a: TreeEntry | undefined, b: TreeEntry | undefined): boolean =>
  a?.mode === b?.mode && a?.oid === b?.oid

/** git's own rule for binary: a NUL in the first 8,000 bytes. What is too big to merge line by line counts as binary too. */
const isBinary = (bytes: Buffer): boolean =>
  bytes.length > maxMergeBytes || bytes.subarray(0, 8000).includes(0)

/** A version as a person reads it: text, or what it is instead. */
export async function show(entry: TreeEntry | undefined, blobs: Blobs): Promise<string> {
  if (!entry) return ''
  if (!isFile(entry) && entry.mode !== symlink) return entry.oid
  const bytes = await blobs.read(entry)
  return isBinary(bytes) ? `(binary, ${bytes.length} bytes)` : shown(bytes)
}

/** At most 4 KiB, cut between characters. */
function shown(bytes: Buffer): string {
  if (bytes.length <= maxShownBytes) return bytes.toString('utf8')
  let end = maxShownBytes
  while (end > 0 && (bytes[end]! & 0xc0) === 0x80) end -= 1
  return bytes.subarray(0, end).toString('utf8')
}

/** Reads blobs of the mirror; each call is one short process. */
export function createBlobs(git: GitRunner, gitDir: string, signal: AbortSignal): Blobs {
  const cache = new Map<string, Promise<Buffer>>()
  return {
    read({ oid }) {
      const known = cache.get(oid)
      if (known) return known
      const bytes = git.bytes(['cat-file', 'blob', oid], { gitDir, signal, maxBytes: 512 << 20 })
      cache.set(oid, bytes)
      return bytes
    },
    async hunks(from, to) {
      const args = ['diff', '-U0', '--no-ext-diff', '--no-textconv', '--no-color', '--text', '--no-renames']
      const patch = await git.bytes([...args, '--end-of-options', from.oid, to.oid, '--'], {
        gitDir,
        signal,
      })
      return patch.toString('latin1')
    },
  }
}
