import fc from 'fast-check'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { linesOf, mergeLines, parseHunks } from './line-merge.ts'
import type { Mirror, TreeChange } from './port.ts'
import { agent, createFixture, gone, never, put, userGit, type Fixture } from './test-fixture.ts'

const atMs = 1_700_000_000_000
const fileNames = ['a', 'dir/b', 'dir/c', 'd é', 'e']
const lineCount = 12
const baseText = (name: string) =>
  Array.from({ length: lineCount }, (_, index) => `${name} ${index}\n`).join('')
let fixture: Fixture
let mirror: Mirror
let base: string

beforeAll(async () => {
  fixture = await createFixture()
  await writeFile(join(fixture.source, 'keep'), 'keep\n')
  fixture.commitAll()
  mirror = await fixture.mirrors.open(fixture.source, never)
  const parent = await mirror.resolve('', never)
  const changes = fileNames.map((name) => put(name, baseText(name)))
  base = (await mirror.commit({ parent, changes, ref: 'refs/tutti/base', message: 'base', atMs }, never))
    .commit
})
afterAll(() => fixture.remove())

/** A path's wish: other lines in the middle, another content, away, or a marker-like text. */
type Edit = { readonly line: number; readonly text: string } | 'delete' | 'replace'
type Edits = Readonly<Record<string, readonly Edit[]>>

const edit = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      line: fc.nat(lineCount - 1),
      text: fc.constantFrom('x', 'y', '<<<<<<<', '=======', '', 'two\nlines'),
    }),
  },
  { weight: 1, arbitrary: fc.constantFrom('delete' as const, 'replace' as const) },
)
const edits = fc.dictionary(
  fc.constantFrom(...fileNames, 'new', 'new/below'),
  fc.array(edit, { minLength: 1, maxLength: 3 }),
  { maxKeys: 3 },
)

function toChanges(wishes: Edits): readonly TreeChange[] {
  return Object.entries(wishes).flatMap(([name, list]): TreeChange[] => {
    // One attempt has a file or a folder under a name, not both.
    if (name === 'new/below' && 'new' in wishes) return []
    if (!fileNames.includes(name))
      return [put(name, list.map((one) => (typeof one === 'string' ? one : one.text)).join('\n'))]
    if (list.includes('delete')) return [gone(name)]
    if (list.includes('replace')) return [put(name, 'replaced\n')]
    const text = list.reduce(
      (lines, one) =>
        typeof one === 'string' ? lines : lines.with(one.line, one.text === '' ? '' : `${one.text}\n`),
      linesOf(Buffer.from(baseText(name))),
    )
    return [put(name, Buffer.from(text.join(''), 'latin1'))]
  })
}

const commitOf = async (index: number, wishes: Edits) => {
  const ref = `refs/tutti/agents/${agent(index)}/checkpoint`
  const request = { parent: base, changes: toChanges(wishes), ref, message: 'turn', atMs }
  return { bcId: agent(index), commit: (await mirror.commit(request, never)).commit }
}

const combine = (attempts: readonly { bcId: ReturnType<typeof agent>; commit: string }[]) =>
  mirror.combine({ base, attempts, ref: 'refs/tutti/combined', message: 'm', atMs }, never)

const treeLines = (commit: string) =>
  userGit(mirror.path, 'ls-tree', '-r', '-z', commit).split('\0').filter(Boolean)

test('any attempts combine: repeatable, valid, every conflict listed with two versions, untouched paths as in the base', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(edits, { minLength: 2, maxLength: 3 }), async (wishes) => {
      const attempts: Awaited<ReturnType<typeof commitOf>>[] = []
      for (const [index, wish] of wishes.entries()) attempts.push(await commitOf(index + 1, wish))
      const combined = await combine(attempts)
      expect(await combine(attempts)).toEqual(combined)
      for (const { line, versions } of combined.conflicts) {
        expect(line).toBeGreaterThanOrEqual(1)
        expect(line).toBeLessThanOrEqual(lineCount + 1)
        expect(new Set(versions.map(({ bcId }) => bcId)).size).toBeGreaterThanOrEqual(2)
      }
      const touched = new Set(wishes.flatMap((wish) => Object.keys(wish)))
      const before = treeLines(base).filter((entry) => !touched.has(entry.split('\t')[1]!))
      expect(treeLines(combined.commit)).toEqual(expect.arrayContaining(before))
      // A path that one attempt alone touched is as that attempt made it, unless a conflict or a rename took it.
      const isPlain =
        combined.conflicts.length === 0 &&
        !wishes.some((wish) => Object.values(wish).flat().includes('delete'))
      const entriesAt = (commit: string, name: string) =>
        treeLines(commit).filter((entry) => entry.endsWith(`\t${name}`))
      const alone = wishes.flatMap((wish, index) =>
        Object.keys(wish)
          .filter((name) => isPlain && !wishes.some((other, at) => at !== index && name in other))
          .map((name) => ({ name, commit: attempts[index]!.commit })),
      )
      expect(alone.map(({ name }) => entriesAt(combined.commit, name))).toEqual(
        alone.map(({ name, commit }) => entriesAt(commit, name)),
      )
      const markers = treeLines(combined.commit).filter((entry) => !entry.endsWith('keep'))
      for (const entry of markers)
        expect(userGit(mirror.path, 'cat-file', 'blob', entry.split(/[ \t]/)[2]!)).not.toMatch(
          /^(?:>{7}|\|{7})/m,
        )
    }),
    { numRuns: 15 },
  )
}, 120_000)

test('edits that do not touch each other give the same tree in every order', async () => {
  const disjoint = fc.shuffledSubarray(
    fileNames.flatMap((name) => [1, 5, 9].map((line) => ({ name, line }))),
    { minLength: 3, maxLength: 6 },
  )
  await fc.assert(
    fc.asyncProperty(disjoint, async (places) => {
      const attempts: Awaited<ReturnType<typeof commitOf>>[] = []
      for (const [index, { name, line }] of places.entries())
        attempts.push(await commitOf(index + 1, { [name]: [{ line, text: `by ${index}` }] }))
      const forward = await combine(attempts)
      const backward = await combine(attempts.toReversed())
      expect(forward.conflicts).toEqual([])
      expect(backward).toMatchObject({ tree: forward.tree, conflicts: [] })
      for (const [index, { name }] of places.entries()) {
        expect(userGit(mirror.path, 'show', `${forward.commit}:${name}`).split('\n')).toContain(`by ${index}`)
      }
    }),
    { numRuns: 8 },
  )
}, 120_000)

test('merged lines: with one version it is that version; the order of versions never matters', () => {
  const text = fc.array(fc.constantFrom('a\n', 'b\n', 'c\n'), { maxLength: 10 })
  const hunksFor = (count: number) =>
    fc
      .array(fc.record({ start: fc.nat(count), count: fc.nat(2), lines: text }), { maxLength: 4 })
      .map((hunks) =>
        hunks
          .filter((hunk) => hunk.start + hunk.count <= count && (hunk.count > 0 || hunk.lines.length > 0))
          .toSorted((a, b) => a.start - b.start)
          .filter(
            (hunk, index, all) => index === 0 || all[index - 1]!.start + all[index - 1]!.count < hunk.start,
          ),
      )
  const cases = text.chain((base) =>
    fc.tuple(fc.constant(base), fc.array(hunksFor(base.length), { minLength: 1, maxLength: 4 })),
  )
  fc.assert(
    fc.property(cases, ([lines, all]) => {
      const versions = all.map((hunks, name) => ({ name, hunks }))
      const merged = mergeLines(lines, versions)
      const reversed = mergeLines(lines, versions.toReversed())
      expect(reversed.text).toBe(merged.text)
      expect(reversed.overlaps.map(({ start }) => start)).toEqual(merged.overlaps.map(({ start }) => start))
      const same = mergeLines(lines, [versions[0]!, versions[0]!])
      expect(same.overlaps).toEqual([])
      expect(same.text).toBe(mergeLines(lines, [versions[0]!]).text)
      for (const { versions: own } of merged.overlaps) expect(own.length).toBeGreaterThanOrEqual(2)
    }),
  )
})

test('reads hunks of any kind, and not those inside of lines', () => {
  const version = ['new\n', 'b\n', 'c\n']
  const patch =
    'diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n+new\n@@ -4,2 +3,0 @@ context\n-d\r@@ -1 +1 @@\n-e\n'
  expect(parseHunks(patch, version)).toEqual([
    { start: 0, count: 0, lines: ['new\n'] },
    { start: 3, count: 2, lines: [] },
  ])
})
