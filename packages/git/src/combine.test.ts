import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { agent, createFixture, gone, never, put, userGit, type Fixture } from './test-fixture.ts'
import type { Combined, Mirror, TreeChange } from './port.ts'

const atMs = 1_700_000_000_000
const ref = 'refs/tutti/ensembles/en-1/synthesis'
const lines = (count: number) => Array.from({ length: count }, (_, index) => `line ${index + 1}\n`)
const withLine = (number: number, text: string) =>
  lines(20)
    .with(number - 1, text)
    .join('')
let fixture: Fixture
let mirror: Mirror
let base: string

beforeEach(async () => {
  fixture = await createFixture()
  await writeFile(join(fixture.source, 'app.ts'), lines(20).join(''))
  await writeFile(join(fixture.source, 'other.ts'), 'other\n')
  await writeFile(join(fixture.source, 'bin'), Buffer.from([0, 1, 2]))
  base = fixture.commitAll()
  mirror = await fixture.mirrors.open(fixture.source, never)
})
afterEach(() => fixture.remove())

async function combine(...attempts: (readonly TreeChange[])[]): Promise<Combined> {
  const made: { bcId: ReturnType<typeof agent>; commit: string }[] = []
  for (const [index, changes] of attempts.entries()) {
    const own = `refs/tutti/agents/${agent(index + 1)}/checkpoint`
    const { commit } = await mirror.commit({ parent: base, changes, ref: own, message: 'turn', atMs }, never)
    made.push({ bcId: agent(index + 1), commit })
  }
  const combined = await mirror.combine({ base, attempts: made, ref, message: 'Combine', atMs }, never)
  expect(await mirror.readRef(ref, never)).toBe(combined.commit)
  return combined
}

const read = (combined: Combined, path: string) => userGit(mirror.path, 'show', `${combined.commit}:${path}`)
const names = (combined: Combined) =>
  userGit(mirror.path, 'ls-tree', '-r', '--name-only', combined.commit).split('\n')

test('names with a backslash are names as any other', async () => {
  const combined = await combine([put('dir\\a.ts', 'first\n')], [put('\\', 'second\n')])
  expect(combined.conflicts).toEqual([])
  expect([read(combined, 'dir\\a.ts'), read(combined, '\\')]).toEqual(['first', 'second'])
})

test('ENS-05 a conflicting line keeps the base and is listed with both versions; the rest is merged', async () => {
  const combined = await combine(
    [put('app.ts', withLine(10, 'first\n')), put('new1.ts', '1\n')],
    [put('app.ts', withLine(10, 'second\n').replace('line 18\n', 'eighteen\n')), put('new2.ts', '2\n')],
  )
  expect(combined.conflicts).toEqual([
    {
      path: 'app.ts',
      kind: 'content',
      line: 10,
      base: 'line 10\n',
      versions: [
        { bcId: agent(1), text: 'first\n' },
        { bcId: agent(2), text: 'second\n' },
      ],
    },
  ])
  expect(read(combined, 'app.ts')).toBe(withLine(18, 'eighteen\n').trim())
  expect(names(combined)).toEqual(['app.ts', 'bin', 'new1.ts', 'new2.ts', 'other.ts'])
  expect(
    userGit(
      mirror.path,
      'log',
      '-1',
      '--format=%P|%s|%(trailers:key=Tutti-Attempt,valueonly,separator=%x2C)',
      combined.commit,
    ),
  ).toBe(`${base}|Combine|${agent(1)},${agent(2)}`)
})

test('ENS-06 the same change by all counts once; the tree is that of one', async () => {
  const same = [put('app.ts', withLine(3, 'same\n')), put('other.ts', 'same\n')]
  const combined = await combine(same, same, same, same)
  const one = userGit(mirror.path, 'rev-parse', `refs/tutti/agents/${agent(1)}/checkpoint^{tree}`)
  expect(combined).toMatchObject({ tree: one, conflicts: [] })
  // Also within a file, beside changes that differ.
  const partly = await combine(
    [put('app.ts', withLine(3, 'same\n')), put('x', '1')],
    [put('app.ts', lines(20).with(2, 'same\n').with(14, 'own\n').join('')), put('x', '2')],
  )
  expect(partly.conflicts.map(({ path, kind }) => `${path} ${kind}`)).toEqual(['x add_add'])
  expect(read(partly, 'app.ts')).toBe(lines(20).with(2, 'same\n').with(14, 'own\n').join('').trim())
  expect(read(partly, 'x')).toBe('1')
})

test('ENS-08 one attempt gives its own tree; ENS-07 no change gives the base itself', async () => {
  const combined = await combine([put('bin', Buffer.from([0, 9])), gone('other.ts')])
  expect(combined.tree).toBe(
    userGit(mirror.path, 'rev-parse', `refs/tutti/agents/${agent(1)}/checkpoint^{tree}`),
  )
  expect(await combine([], [])).toEqual({
    commit: base,
    tree: await mirror.treeOf(base, never),
    conflicts: [],
  })
})

test('follows a rename when everything else fits', async () => {
  const combined = await combine(
    [gone('app.ts'), put('main.ts', lines(20).join(''))],
    [put('app.ts', withLine(5, 'five\n'))],
  )
  expect(combined.conflicts).toEqual([])
  expect(read(combined, 'main.ts')).toBe(withLine(5, 'five\n').trim())
  expect(names(combined)).not.toContain('app.ts')
})

describe('what cannot be merged keeps the base and is listed', () => {
  test.each<[string, readonly TreeChange[], readonly TreeChange[], string, string]>([
    [
      'binary',
      [put('bin', Buffer.from([0, 1]))],
      [put('bin', Buffer.from([0, 2]))],
      'binary',
      '(binary, 3 bytes)',
    ],
    ['deleted and changed', [gone('other.ts')], [put('other.ts', 'new\n')], 'modify_delete', 'other\n'],
    ['file and link', [put('other.ts', 'bin', '120000')], [put('other.ts', 'new\n')], 'type', 'other\n'],
    [
      'file and folder',
      [gone('other.ts'), put('other.ts/in', 'x')],
      [put('other.ts', 'new\n')],
      'type',
      'other\n',
    ],
  ])('%s', async (_name, first, second, kind, text) => {
    const combined = await combine([...first, put('one', '1')], [...second, put('two', '2')])
    expect(combined.conflicts).toMatchObject([{ kind, line: 1, base: text }])
    expect(combined.conflicts[0]!.versions.map(({ bcId }) => bcId).toSorted()).toEqual([agent(1), agent(2)])
    expect(names(combined)).toEqual(['app.ts', 'bin', 'one', 'other.ts', 'two'])
    expect(read(combined, combined.conflicts[0]!.path)).toBe(
      userGit(mirror.path, 'show', `${base}:${combined.conflicts[0]!.path}`),
    )
  })

  test('a file and a folder, both new, are both left out', async () => {
    const combined = await combine([put('n', 'file')], [put('n/in', 'x'), put('fine', 'y')])
    expect(combined.conflicts).toMatchObject([{ path: 'n', kind: 'type', base: '' }])
    expect(names(combined)).toEqual(['app.ts', 'bin', 'fine', 'other.ts'])
  })

  test('the same new file with another mode keeps the first', async () => {
    const combined = await combine([put('run', 'x', '100755')], [put('run', 'x')])
    expect(combined.conflicts).toMatchObject([{ path: 'run', kind: 'mode' }])
    expect(userGit(mirror.path, 'ls-tree', combined.commit, 'run')).toContain('100755')
  })

  test('text that looks like conflict markers or hunk headers is only text', async () => {
    const marked = '<<<<<<< a\n=======\n@@ -1 +1 @@\r@@ -1,9 +1,9 @@\n>>>>>>> b\n'
    const combined = await combine(
      [put('app.ts', withLine(10, marked))],
      [put('app.ts', withLine(10, 'b\n').replace('line 1\n', marked))],
    )
    expect(combined.conflicts).toMatchObject([{ line: 10, base: 'line 10\n' }])
    expect(read(combined, 'app.ts')).toBe(lines(20).with(0, marked).join('').trim())
  })

  test('a missing last line end is no line of its own', async () => {
    const combined = await combine(
      [put('app.ts', lines(20).join('') + 'end one')],
      [put('app.ts', lines(20).join('') + 'end two'), put('other.ts', 'other\nmore')],
    )
    expect(combined.conflicts).toMatchObject([
      { line: 21, base: '', versions: [{ text: 'end one' }, { text: 'end two' }] },
    ])
    expect(read(combined, 'app.ts')).toBe(lines(20).join('').trim())
  })
})
