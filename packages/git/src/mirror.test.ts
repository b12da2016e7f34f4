import { chmod, mkdir, readdir, symlink, utimes, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { agent, createFixture, gone, never, put, userGit, type Fixture } from './test-fixture.ts'

const ref = 'refs/tutti/agents/a/checkpoint'
const atMs = 1_700_000_000_000
let fixture: Fixture
let base: string

beforeEach(async () => {
  fixture = await createFixture()
  await writeFile(join(fixture.source, 'a.txt'), 'one\ntwo\n')
  await writeFile(join(fixture.source, 'old.txt'), 'old\n')
  await mkdir(join(fixture.source, 'dir'))
  await writeFile(join(fixture.source, 'dir/x'), 'x\n')
  base = fixture.commitAll()
})
afterEach(() => fixture.remove())

test('resolves the default branch, branches, tags and hashes, and follows the source', async () => {
  userGit(fixture.source, 'tag', '-a', 'v1', '-m', 'one')
  userGit(fixture.source, 'branch', 'fix/ünïcode')
  const mirror = await fixture.mirrors.open(fixture.source, never)
  for (const name of [
    '',
    'HEAD',
    'trunk',
    'v1',
    'fix/ünïcode',
    'refs/heads/trunk',
    base,
    base.slice(0, 10),
  ]) {
    expect({ name, commit: await mirror.resolve(name, never) }).toEqual({ name, commit: base })
  }
  const mayHave = (name: string) => fixture.mirrors.mayHaveRef(fixture.source, name, never)
  for (const name of ['HEAD', 'trunk', 'v1', 'fix/ünïcode', 'refs/tags/v1', base, 'abcdef0'])
    expect({ name, there: await mayHave(name) }).toEqual({ name, there: true })
  for (const name of ['nope', 'ünïcode', 'heads/trunk', 'refs/heads/v1'])
    expect({ name, there: await mayHave(name) }).toEqual({ name, there: false })
  expect(await fixture.mirrors.defaultBranch(fixture.source, never)).toBe('trunk')
  await writeFile(join(fixture.source, 'b.txt'), 'b\n')
  const next = fixture.commitAll()
  userGit(fixture.source, 'branch', '-D', 'fix/ünïcode')
  await mirror.updateRef('refs/tutti/base/en-1', base, never)
  await fixture.mirrors.open(`${fixture.source}/`, never)
  expect(await mirror.resolve('', never)).toBe(next)
  await expect(mirror.resolve('fix/ünïcode', never)).rejects.toMatchObject({ code: 'not_found' })
  expect(await mirror.readRef('refs/tutti/base/en-1', never)).toBe(base)
  expect((await fixture.mirrors.attach(fixture.source, never)).path).toBe(mirror.path)
})

test('makes exactly the tree that was asked for: modes, links, deletes, binary, any name, swaps of file and folder', async () => {
  const mirror = await fixture.mirrors.open(fixture.source, never)
  const odd = Buffer.from([0x6e, 0xff, 0x22, 0x5c, 0x0a, 0x09, 0x20])
  const changes = [
    put('run.sh', '#!/bin/sh\n', '100755'),
    put('link', '/etc/passwd', '120000'),
    put('binary', Buffer.from([0, 255, 10, 13, 0])),
    put('empty', ''),
    put('ünï/日本.txt', 'crlf\r\n'),
    put(odd, 'odd'),
    gone('old.txt'),
    gone('dir/x'),
    put('dir', 'now a file\n'),
    gone('a.txt'),
    put('a.txt/inside', 'now a folder\n'),
    gone('never/was'),
  ]
  const request = { parent: base, changes, ref, message: 'checkpoint\n', atMs }
  const made = await mirror.commit(request, never)
  expect(await mirror.commit(request, never)).toEqual(made)
  expect(await mirror.readRef(ref, never)).toBe(made.commit)
  const work = join(fixture.folder, 'work')
  userGit(fixture.folder, 'clone', '-q', '--no-checkout', mirror.path, work)
  userGit(work, 'fetch', '-q', 'origin', ref)
  userGit(work, 'checkout', '-q', 'FETCH_HEAD')
  // The same tree by the user's own git.
  const twin = join(fixture.folder, 'twin')
  userGit(fixture.folder, 'clone', '-q', fixture.source, twin)
  userGit(twin, 'rm', '-q', '-r', 'old.txt', 'dir', 'a.txt')
  for (const change of changes) {
    if ('deleted' in change) continue
    const path = Buffer.concat([Buffer.from(`${twin}/`), change.path])
    const chunks: Uint8Array[] = []
    for await (const chunk of change.content()) chunks.push(chunk)
    const text = Buffer.concat(chunks)
    await mkdir(Buffer.from(path.subarray(0, path.lastIndexOf('/'))).toString(), { recursive: true })
    if (change.mode === '120000') await symlink(text.toString(), path)
    else await writeFile(path, text)
    if (change.mode === '100755') await chmod(path, 0o755)
  }
  userGit(twin, 'add', '-A')
  expect(userGit(twin, 'write-tree')).toBe(made.tree)
  expect(userGit(mirror.path, 'log', '-1', '--format=%an|%ae|%at|%s|%P', made.commit)).toBe(
    `Tutti|tutti@localhost|1700000000|checkpoint|${base}`,
  )
  expect(userGit(mirror.path, 'for-each-ref', '--format=%(refname)', 'refs/tutti/import')).toBe('')
  expect(userGit(mirror.path, 'fsck', '--strict')).not.toContain('error')
})

test('gives the parent back when nothing changes', async () => {
  const mirror = await fixture.mirrors.open(fixture.source, never)
  const tree = await mirror.treeOf(base, never)
  for (const changes of [[], [put('a.txt', 'one\ntwo\n')], [gone('no-such')]]) {
    expect(await mirror.commit({ parent: base, changes, ref, message: 'm', atMs }, never)).toEqual({
      commit: base,
      tree,
    })
  }
  expect(await mirror.readRef(ref, never)).toBe(base)
})

test('SEC-01 refuses paths that lead out or into .git, and changes that cannot both be', async () => {
  const mirror = await fixture.mirrors.open(fixture.source, never)
  const bad = [
    '../x',
    '/etc/x',
    'a/../../x',
    '.git/config',
    '.GIT/hooks/y',
    'a/.git/z',
    'a\0b',
    '',
    './',
    'a//b',
    'x'.repeat(5000),
  ]
  bad.push('git~1/config', '.git . /x', '.g\u200cit/config', 'a\\.git\\config', '.git::$INDEX_ALLOCATION/x')
  bad.push('n'.repeat(256))
  for (const path of bad) {
    const request = { parent: base, changes: [put(path, 'x')], ref, message: 'm', atMs }
    await expect(mirror.commit(request, never)).rejects.toMatchObject({ code: 'invalid_argument' })
  }
  for (const changes of [
    [put('q', '1'), put('q', '2')],
    [put('q', '1'), put('q/r', '2')],
  ]) {
    await expect(
      mirror.commit({ parent: base, changes, ref, message: 'm', atMs }, never),
    ).rejects.toMatchObject({
      code: 'invalid_argument',
    })
  }
  expect(await mirror.readRef(ref, never)).toBeUndefined()
  const changes = [put('a\\b', '1'), put('dir\\.gitignore', '2')]
  const { commit } = await mirror.commit({ parent: base, changes, ref, message: 'm', atMs }, never)
  expect(await mirror.readRef(ref, never)).toBe(commit)
})

test('refuses a content that is shorter or longer than it says, and moves nothing', async () => {
  const mirror = await fixture.mirrors.open(fixture.source, never)
  for (const size of [2, 9]) {
    const changes = [{ ...put('f', 'four'), size }]
    await expect(
      mirror.commit({ parent: base, changes, ref, message: 'm', atMs }, never),
    ).rejects.toMatchObject({
      code: 'data_loss',
    })
  }
  expect(await mirror.readRef(ref, never)).toBeUndefined()
  expect((await readdir(mirror.path)).filter((name) => name.includes('crash'))).toEqual([])
})

test('an empty source begins with an empty root commit, the same everywhere', async () => {
  const empty = join(fixture.folder, 'empty')
  userGit(fixture.folder, 'init', '-q', '--bare', empty)
  const mirror = await fixture.mirrors.open(empty, never)
  const root = await mirror.resolve('', never)
  expect(userGit(mirror.path, 'ls-tree', root)).toBe('')
  await fixture.mirrors.open(empty, never)
  expect(await mirror.resolve('', never)).toBe(root)
  const { commit } = await mirror.commit(
    { parent: root, changes: [put('f', 'x')], ref, message: 'm', atMs },
    never,
  )
  expect(await mirror.push({ commit, branch: 'first' }, never)).toEqual({ outcome: 'pushed' })
  expect(userGit(empty, 'rev-parse', 'first')).toBe(commit)
})

test('git apply takes the diff and makes the very tree, whatever is in it', async () => {
  const binary = Buffer.from(Array.from({ length: 4000 }, (_, index) => (index * 7919) % 256))
  const long = Array.from({ length: 40 }, (_, index) => `line ${index}\r\n`)
  await writeFile(join(fixture.source, 'data.bin'), binary)
  await writeFile(join(fixture.source, 'windows.txt'), long.join(''))
  await writeFile(join(fixture.source, 'latin.txt'), Buffer.from('na\u00efve\n', 'latin1'))
  await writeFile(join(fixture.source, 'tool.sh'), 'echo\n')
  await writeFile(join(fixture.source, 'gone.bin'), binary)
  const from = fixture.commitAll()
  const mirror = await fixture.mirrors.open(fixture.source, never)
  const changes = [
    put('data.bin', Buffer.concat([binary, Buffer.from([0, 255])])),
    put('new.bin', binary.subarray(0, 1000)),
    gone('gone.bin'),
    put('windows.txt', long.with(20, 'changed\r\n').join('')),
    put('latin.txt', Buffer.from('na\u00efve\n\u00fc\n', 'latin1')),
    put(Buffer.from('caf\u00e9.txt', 'latin1'), 'x\n'),
    put('évil\u202e.txt', 'x\u202e\u001b[31m\n'),
    put('a"b\\c\td.txt', 'no newline at the end'),
    put('link', 'tool.sh', '120000'),
    put('tool.sh', 'echo\n', '100755'),
    gone('old.txt'),
    put('renamed.txt', 'old\n'),
  ]
  const { commit } = await mirror.commit({ parent: from, changes, ref, message: 'm', atMs }, never)
  const { patch, cut } = await mirror.diff(from, commit, 1 << 20, never)
  expect(cut).toBe(false)
  expect(Buffer.from(patch).toString()).toContain('rename from old.txt')
  const file = join(fixture.folder, 'patch')
  await writeFile(file, patch)
  userGit(fixture.source, 'apply', '--index', '--whitespace=nowarn', file)
  expect(userGit(fixture.source, 'write-tree')).toBe(await mirror.treeOf(commit, never))
})

test('a diff is cut after a whole line, and says so', async () => {
  const mirror = await fixture.mirrors.open(fixture.source, never)
  const changes = [put('new.txt', 'x\n'.repeat(100))]
  const { commit } = await mirror.commit({ parent: base, changes, ref, message: 'm', atMs }, never)
  expect(await mirror.diff(base, base, 100, never)).toEqual({ patch: Buffer.alloc(0), cut: false })
  const { patch, cut } = await mirror.diff(base, commit, 60, never)
  expect(cut).toBe(true)
  expect(Buffer.from(patch).toString()).toBe('diff --git a/new.txt b/new.txt\nnew file mode 100644\n')
})

test('pushes with a lease, never over commits that were not seen, never to a checked-out branch', async () => {
  const mirror = await fixture.mirrors.open(fixture.source, never)
  const make = (text: string, parent = base) =>
    mirror
      .commit({ parent, changes: [put('p', text)], ref, message: text, atMs }, never)
      .then(({ commit }) => commit)
  const one = await make('1')
  expect(await mirror.push({ commit: one, branch: 'tutti/x' }, never)).toEqual({ outcome: 'pushed' })
  expect(await mirror.push({ commit: one, branch: 'tutti/x' }, never)).toEqual({ outcome: 'already_there' })
  const two = await make('2')
  expect(await mirror.push({ commit: two, branch: 'tutti/x' }, never)).toMatchObject({
    outcome: 'refused',
    why: 'moved',
  })
  expect(await mirror.push({ commit: two, branch: 'tutti/x', expected: one }, never)).toEqual({
    outcome: 'pushed',
  })
  expect(await mirror.push({ commit: one, branch: 'tutti/x', expected: one }, never)).toMatchObject({
    why: 'moved',
  })
  userGit(fixture.source, 'worktree', 'add', '-q', '-b', 'linked', join(fixture.folder, 'linked'))
  for (const [branch, expected] of [['trunk', base], ['trunk'], ['linked', base], ['linked']] as const) {
    const lease = expected === undefined ? {} : { expected }
    expect(await mirror.push({ commit: two, branch, ...lease }, never)).toEqual({
      outcome: 'refused',
      why: 'protected_branch',
      message: 'The branch is checked out in the repository; choose another branch.',
    })
  }
  expect(userGit(fixture.source, 'rev-parse', 'trunk', 'tutti/x')).toBe(`${base}\n${two}`)
  expect(userGit(fixture.source, 'status', '--porcelain')).toBe('')
})

test('says what is wrong with a source that is not there', async () => {
  const missing = join(fixture.folder, 'missing')
  await expect(fixture.mirrors.open(missing, never)).rejects.toMatchObject({ code: 'unavailable' })
  await expect(fixture.mirrors.attach(missing, never)).rejects.toMatchObject({ code: 'not_found' })
  await expect(fixture.mirrors.open(fixture.source, AbortSignal.abort())).rejects.toMatchObject({
    code: 'cancelled',
  })
})

test('many opens at once, from two sets of mirrors on one folder, give one good mirror', async () => {
  const { createMirrors } = await import('./mirrors.ts')
  const other = createMirrors({ root: join(fixture.folder, 'mirrors') })
  const opened = await Promise.all(
    Array.from({ length: 12 }, (_, index) =>
      (index % 2 ? other : fixture.mirrors).open(fixture.source, never),
    ),
  )
  expect(new Set(opened.map(({ path }) => path)).size).toBe(1)
  expect(await opened[0]!.resolve('', never)).toBe(base)
})

test('a lock file that a killed git has left does not stop the work', async () => {
  const mirror = await fixture.mirrors.open(fixture.source, never)
  const past = new Date(Date.now() - 60_000)
  const source = dirname(mirror.sourceObjects)
  const locks = [
    join(mirror.path, 'refs/tutti/agents/a/checkpoint.lock'),
    join(mirror.path, 'packed-refs.lock'),
    join(source, 'packed-refs.lock'),
    join(source, 'refs/tutti/source/heads/trunk.lock'),
  ]
  for (const path of locks) {
    await mkdir(dirname(path), { recursive: true })
    await writeFile(path, '')
    await utimes(path, past, past)
  }
  const request = { parent: base, changes: [put('f', 'x')], ref, message: 'm', atMs }
  const { commit } = await mirror.commit(request, never)
  expect(await mirror.readRef(ref, never)).toBe(commit)
  await writeFile(join(fixture.source, 'b.txt'), 'b\n')
  const next = fixture.commitAll()
  expect(await (await fixture.mirrors.open(fixture.source, never)).resolve('', never)).toBe(next)
})

test('a shallow clone, a linked work tree and a detached HEAD are sources too', async () => {
  await writeFile(join(fixture.source, 'b.txt'), 'b\n')
  const next = fixture.commitAll()
  const shallow = join(fixture.folder, 'shallow')
  userGit(fixture.folder, 'clone', '-q', '--depth=1', `file://${fixture.source}`, shallow)
  const linked = join(fixture.folder, 'linked')
  userGit(fixture.source, 'worktree', 'add', '-q', '--detach', linked, base)
  for (const [source, head] of [
    [shallow, next],
    [linked, base],
  ] as const) {
    const mirror = await fixture.mirrors.open(source, never)
    expect(await mirror.resolve('', never)).toBe(head)
    expect(await fixture.mirrors.defaultBranch(source, never)).toBe('trunk')
    const { commit } = await mirror.commit(
      { parent: head, changes: [put('f', source)], ref, message: 'm', atMs },
      never,
    )
    expect(await mirror.push({ commit, branch: 'tutti/f' }, never)).toEqual({ outcome: 'pushed' })
    expect(userGit(source, 'rev-parse', 'tutti/f')).toBe(commit)
  }
  // With a second branch beside it nothing says which one pull requests should go to.
  userGit(fixture.source, 'branch', '-m', 'trunk', 'develop')
  await expect(fixture.mirrors.defaultBranch(linked, never)).rejects.toMatchObject({
    code: 'failed_precondition',
  })
})

test('many agents checkpoint at once in one mirror', async () => {
  const mirror = await fixture.mirrors.open(fixture.source, never)
  const made = await Promise.all(
    Array.from({ length: 16 }, (_, index) => {
      const request = {
        parent: base,
        changes: [put('f', String(index))],
        ref: `refs/tutti/agents/${index}`,
        message: 'm',
        atMs,
      }
      return mirror.commit(request, never)
    }),
  )
  expect(new Set(made.map(({ commit }) => commit)).size).toBe(16)
  for (const [index, { commit }] of made.entries())
    expect(await mirror.readRef(`refs/tutti/agents/${index}`, never)).toBe(commit)
})

test('makes a commit with the files of an earlier one, and says what differs', async () => {
  const mirror = await fixture.mirrors.open(fixture.source, never)
  const first = { parent: base, changes: [put('a.txt', 'two'), gone('old.txt'), put('new', 'n')] }
  const later = await mirror.commit({ ...first, ref, message: 'm', atMs }, never)
  const request = { parent: later.commit, files: base, changes: [put('more', 'm')], ref, message: 'm', atMs }
  const back = await mirror.commit(request, never)
  const names = async (commit: string, only?: (path: Uint8Array) => boolean) =>
    Array.fromAsync(mirror.files(commit, never, only), async ({ path, content }) => {
      const bytes = Buffer.concat(await Array.fromAsync(content))
      return `${Buffer.from(path).toString()}: ${bytes.toString()}`
    })
  expect(await names(back.commit)).toEqual(['a.txt: one\ntwo\n', 'dir/x: x\n', 'more: m', 'old.txt: old\n'])
  expect(await names(back.commit, (path) => Buffer.from(path).toString() === 'more')).toEqual(['more: m'])
  expect(await names(back.commit, () => false)).toEqual([])
  const differences = await mirror.differences(later.commit, back.commit, never)
  expect(differences.map(({ path, wasThere }) => [Buffer.from(path).toString(), wasThere])).toEqual([
    ['a.txt', true],
    ['more', false],
    ['new', true],
    ['old.txt', false],
  ])
  expect(await mirror.differences(base, base, never)).toEqual([])
  // The very files of the parent are no commit of its own.
  expect((await mirror.commit({ ...request, files: later.commit, changes: [] }, never)).commit).toBe(
    later.commit,
  )
  const whole = await mirror.commit({ ...request, changes: [] }, never)
  expect(whole.tree).toBe(await mirror.treeOf(base, never))
})

test('what is not in the mirror is not_found', async () => {
  const mirror = await fixture.mirrors.open(fixture.source, never)
  const missing = 'f'.repeat(40)
  const request = { parent: missing, changes: [put('f', 'x')], ref, message: 'm', atMs }
  const attempts = [{ bcId: agent(1), commit: missing }]
  const notFound = { code: 'not_found' }
  await expect(mirror.resolve('no-such-branch', never)).rejects.toMatchObject(notFound)
  await expect(mirror.resolve(missing, never)).rejects.toMatchObject(notFound)
  await expect(mirror.treeOf(missing, never)).rejects.toMatchObject(notFound)
  await expect(mirror.commit(request, never)).rejects.toMatchObject(notFound)
  await expect(mirror.combine({ base, attempts, ref, message: 'm', atMs }, never)).rejects.toMatchObject(
    notFound,
  )
  await expect(mirror.diff(base, missing, 10, never)).rejects.toMatchObject(notFound)
  await expect(mirror.countChanges(base, missing, never)).rejects.toMatchObject(notFound)
  expect(await mirror.readRef('refs/tutti/nothing', never)).toBeUndefined()
})
