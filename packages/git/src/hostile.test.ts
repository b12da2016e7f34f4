import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { checkBranch, checkRefName } from '@tutti/core'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { agent, createFixture, gone, never, put, userGit, type Fixture } from './test-fixture.ts'
import { parseLocation } from './location.ts'
import { createMirrors } from './mirrors.ts'

let fixture: Fixture
let canaries: string
beforeEach(async () => {
  fixture = await createFixture()
  canaries = join(fixture.folder, 'canaries')
  await mkdir(canaries)
})
afterEach(() => fixture.remove())

const hooks =
  `applypatch-msg commit-msg fsmonitor-watchman post-applypatch post-checkout post-commit post-index-change post-merge
  post-receive post-rewrite post-update pre-applypatch pre-auto-gc pre-commit pre-merge-commit pre-push pre-rebase pre-receive
  prepare-commit-msg proc-receive push-to-checkout reference-transaction sendemail-validate update`.split(
    /\s+/,
  )

/** Every key and hook through which git can be made to start a program; each leaves a canary with its own name. */
async function plant(gitDir: string): Promise<void> {
  const tools = join(fixture.folder, 'tools')
  await mkdir(tools, { recursive: true })
  const script = async (name: string, path = join(tools, name)) => {
    await writeFile(path, `#!/bin/sh\ntouch '${canaries}/${name}'\ncat 2>/dev/null\nexit 0\n`, {
      mode: 0o755,
    })
    return path
  }
  const keys = [
    'core.fsmonitor',
    'core.sshCommand',
    'core.askPass',
    'core.alternateRefsCommand',
    'core.pager',
    'core.editor',
    'core.gitProxy',
  ]
  keys.push(
    'filter.f.clean',
    'filter.f.smudge',
    'filter.f.process',
    'diff.d.command',
    'diff.d.textconv',
    'diff.external',
  )
  keys.push(
    'merge.m.driver',
    'credential.helper',
    'gpg.program',
    'uploadpack.packObjectsHook',
    'remote.origin.uploadpack',
  )
  keys.push(
    'remote.origin.receivepack',
    'alias.push',
    'alias.diff',
    'trailer.x.command',
    'sequence.editor',
    'interactive.diffFilter',
  )
  const run = (...args: string[]) =>
    userGit(fixture.folder, 'config', '--file', join(gitDir, 'config'), ...args)
  await mkdir(join(gitDir, 'hooks'), { recursive: true })
  await mkdir(join(gitDir, 'info'), { recursive: true })
  for (const key of keys) run(key, (key.startsWith('alias') ? '!' : '') + (await script(key)))
  for (const hook of hooks) await script(`hook-${hook}`, join(gitDir, 'hooks', hook))
  const more = join(tools, 'more-hooks')
  await mkdir(more, { recursive: true })
  for (const hook of hooks) await script(`more-${hook}`, join(more, hook))
  const included = join(tools, 'included')
  await writeFile(included, `[core]\n\thooksPath = ${more}\n[receive]\n\tdenyCurrentBranch = updateInstead\n`)
  run('include.path', included)
  run('commit.gpgsign', 'true')
  run('protocol.ext.allow', 'always')
  run('receive.denyCurrentBranch', 'updateInstead')
  run(`url.ext::touch ${canaries}/insteadOf.insteadOf`, '/')
  run('gc.auto', '1')
  await writeFile(join(gitDir, 'info/attributes'), '* filter=f diff=d merge=m\n')
  const alternate = join(fixture.folder, 'alternate')
  userGit(fixture.folder, 'init', '-q', '--bare', alternate)
  await writeFile(join(gitDir, 'objects/info/alternates'), `${alternate}/objects\n`)
}

test('SEC-03 nothing that a source repository configures runs on the host, and every result is right', async () => {
  await writeFile(join(fixture.source, 'a.txt'), 'one\n')
  await writeFile(join(fixture.source, '.gitattributes'), '* filter=f diff=d merge=m\n')
  const base = fixture.commitAll()
  await plant(join(fixture.source, '.git'))
  const mirror = await fixture.mirrors.open(fixture.source, never)
  await fixture.mirrors.open(fixture.source, never)
  expect(await fixture.mirrors.defaultBranch(fixture.source, never)).toBe('trunk')
  expect(await mirror.resolve('', never)).toBe(base)
  const attempts = [] as { bcId: ReturnType<typeof agent>; commit: string }[]
  for (const [index, text] of ['two\n', 'three\n'].entries()) {
    const ref = `refs/tutti/agents/${index}/checkpoint`
    const changes = [
      put('a.txt', text),
      put(`new${index}`, text),
      put('.gitattributes', '* filter=f merge=m\n'),
    ]
    attempts.push({
      bcId: agent(index),
      commit: (await mirror.commit({ parent: base, changes, ref, message: 'm', atMs: 0 }, never)).commit,
    })
  }
  const combined = await mirror.combine({ base, attempts, ref: 'refs/tutti/c', message: 'm', atMs: 0 }, never)
  expect(combined.conflicts).toHaveLength(1)
  const { patch } = await mirror.diff(base, combined.commit, 1 << 20, never)
  expect(Buffer.from(patch).toString()).toContain('+three')
  expect(await mirror.countChanges(base, combined.commit, never)).toBe(3)
  expect(await mirror.push({ commit: combined.commit, branch: 'tutti/x' }, never)).toEqual({
    outcome: 'pushed',
  })
  expect(await mirror.push({ commit: combined.commit, branch: 'tutti/x' }, never)).toEqual({
    outcome: 'already_there',
  })
  expect(
    await mirror.push({ commit: combined.commit, branch: 'trunk', expected: base }, never),
  ).toMatchObject({
    why: 'protected_branch',
  })
  expect(await readdir(canaries)).toEqual([])
  // The trap works: the user's own git springs it.
  userGit(fixture.source, 'status')
  expect(await readdir(canaries)).not.toEqual([])
})

test('SEC-03 a target that wants its own program to take the push is refused, not obeyed', async () => {
  const base = fixture.commitAll()
  await plant(join(fixture.source, '.git'))
  userGit(
    fixture.folder,
    'config',
    '--file',
    join(fixture.source, '.git/config'),
    'receive.procReceiveRefs',
    'refs/heads',
  )
  const mirror = await fixture.mirrors.open(fixture.source, never)
  expect(await mirror.push({ commit: base, branch: 'tutti/x' }, never)).toMatchObject({ outcome: 'refused' })
  const { commit } = await mirror.commit(
    { parent: base, changes: [put('f', 'x')], ref: 'refs/tutti/x', message: 'm', atMs: 0 },
    never,
  )
  expect(await mirror.push({ commit, branch: 'trunk' }, never)).toMatchObject({ why: 'protected_branch' })
  expect(await readdir(canaries)).toEqual([])
})

test('SEC-03 a tree that git could not fetch again is refused at the door, with what git finds wrong', async () => {
  const base = fixture.commitAll()
  const mirror = await fixture.mirrors.open(fixture.source, never)
  const submodule = '[submodule "-u./x"]\n\tpath = -u./x\n\turl = ext::sh\n'
  const changes = [put('.gitmodules', submodule)]
  const { commit } = await mirror.commit(
    { parent: base, changes, ref: 'refs/tutti/x', message: 'm', atMs: 0 },
    never,
  )
  expect(await mirror.push({ commit, branch: 'tutti/x' }, never)).toEqual({
    outcome: 'refused',
    why: 'protected_branch',
    message: expect.stringContaining('gitmodulesPath: disallowed submodule path: -u./x'),
  })
  expect((await fixture.mirrors.open(fixture.source, never)).path).toBe(mirror.path)

  // Somebody else's git let it in.
  await writeFile(join(fixture.source, '.gitmodules'), submodule)
  fixture.commitAll()
  await expect(fixture.mirrors.open(fixture.source, never)).rejects.toMatchObject({
    code: 'failed_precondition',
    message: expect.stringContaining('gitmodulesPath: disallowed submodule path: -u./x'),
  })
})

test('SEC-03 a hostile repository around the data folder is not obeyed either', async () => {
  await plant(join(fixture.source, '.git'))
  const clean = join(fixture.folder, 'clean')
  userGit(fixture.folder, 'init', '-q', '-b', 'trunk', clean)
  userGit(clean, 'commit', '-q', '--allow-empty', '-m', 'm')
  const mirrors = createMirrors({ root: join(fixture.source, 'data/mirrors') })
  const mirror = await mirrors.open(clean, never)
  const commit = await mirror.resolve('', never)
  expect(await mirrors.defaultBranch(clean, never)).toBe('trunk')
  expect(await mirror.push({ commit, branch: 'x' }, never)).toEqual({ outcome: 'pushed' })
  expect(await readdir(canaries)).toEqual([])
})

test('SEC-03 the same for a bare target and for hostile variables around us', async () => {
  const bare = join(fixture.folder, 'bare.git')
  await writeFile(join(fixture.source, 'a.txt'), 'one\n')
  const base = fixture.commitAll()
  userGit(fixture.folder, 'clone', '-q', '--bare', fixture.source, bare)
  await plant(bare)
  const before = { ...process.env }
  const evil = join(fixture.folder, 'tools/core.pager')
  Object.assign(process.env, {
    GIT_DIR: join(fixture.source, '.git'),
    GIT_INDEX_FILE: join(fixture.folder, 'index'),
    GIT_SSH_COMMAND: evil,
    GIT_EXTERNAL_DIFF: evil,
    GIT_CONFIG_COUNT: '1',
    GIT_CONFIG_KEY_0: 'core.fsmonitor',
    GIT_CONFIG_VALUE_0: evil,
    GIT_TRACE: join(canaries, 'trace'),
  })
  try {
    const mirror = await fixture.mirrors.open(bare, never)
    const changes = [gone('a.txt'), put('b', 'x')]
    const { commit } = await mirror.commit(
      { parent: base, changes, ref: 'refs/tutti/c', message: 'm', atMs: 0 },
      never,
    )
    await mirror.diff(base, commit, 1000, never)
    expect(await mirror.push({ commit, branch: 'tutti/x' }, never)).toEqual({ outcome: 'pushed' })
  } finally {
    for (const key of Object.keys(process.env)) if (!(key in before)) Reflect.deleteProperty(process.env, key)
  }
  expect(await readdir(canaries)).toEqual([])
  expect(userGit(fixture.source, 'rev-parse', 'HEAD')).toBe(base)
})

const badNames = [
  '--upload-pack=x',
  '-o x',
  '--output=/tmp/x',
  '$(touch x)',
  '`touch x`',
  ';x',
  'a\nb',
  'a\u202eb',
  'refs/../x',
  '@{-1}',
]
badNames.push(
  'x'.repeat(300),
  'a b',
  'a..b',
  'a^',
  'a~1',
  'a:b',
  'a?',
  'a*',
  'a[b',
  'a\\b',
  '/a',
  'a/',
  'a//b',
  'a.lock',
  'a/.b',
  'a.',
  '@',
  'a\u200bb',
  'a\0b',
  "a'b",
  'a|b',
  'a&b',
  '-',
  'a/-b',
)

describe('SEC-11 names are operands only', () => {
  test.each(badNames)('%j is refused everywhere', async (name) => {
    const base = fixture.commitAll()
    const mirror = await fixture.mirrors.open(fixture.source, never)
    const before = (await readdir(fixture.folder)).toSorted()
    const refused = { code: 'invalid_argument' }
    await expect(mirror.resolve(name, never)).rejects.toMatchObject(refused)
    await expect(mirror.readRef(name, never)).rejects.toMatchObject(refused)
    await expect(mirror.push({ commit: base, branch: name }, never)).rejects.toMatchObject(refused)
    await expect(mirror.push({ commit: name, branch: 'ok' }, never)).rejects.toMatchObject(refused)
    await expect(mirror.push({ commit: base, branch: 'ok', expected: name }, never)).rejects.toMatchObject(
      refused,
    )
    await expect(mirror.diff(name, base, 10, never)).rejects.toMatchObject(refused)
    await expect(mirror.treeOf(name, never)).rejects.toMatchObject(refused)
    await expect(mirror.countChanges(base, name, never)).rejects.toMatchObject(refused)
    const request = { parent: name, changes: [], ref: 'refs/tutti/x', message: 'm', atMs: 0 }
    await expect(mirror.commit(request, never)).rejects.toMatchObject(refused)
    expect((await readdir(fixture.folder)).toSorted()).toEqual(before)
  })

  test.each([
    'main',
    'fix/login-2',
    'release/1.2.x',
    'dependabot/npm_and_yarn/a-b',
    'issue#12',
    'ünï/日本',
    'a=b',
    'user@host',
  ])('%j is a plain name', (name) => {
    expect(checkRefName(name, 'ref')).toBe(name)
    expect(checkBranch(name)).toBe(name)
  })

  test('only our own refs can be written', async () => {
    const base = fixture.commitAll()
    const mirror = await fixture.mirrors.open(fixture.source, never)
    for (const ref of [
      'refs/tutti/../heads/x',
      'refs/tutti/a b',
      'refs/tutti/-x',
      'refs/heads/main',
      'refs/tutti/source/heads/trunk',
      'HEAD',
      'refs/tuttifrutti/x',
    ]) {
      await expect(mirror.updateRef(ref, base, never)).rejects.toMatchObject({ code: 'invalid_argument' })
    }
    await expect(mirror.push({ commit: base, branch: 'refs/heads/x' }, never)).rejects.toMatchObject({
      code: 'invalid_argument',
    })
  })
})

describe('SEC-04 locations', () => {
  const refused =
    `http://example.com/a.git git://example.com/a file:///etc file:a ext::sh ext::touch%20x relative/path ./a ~/a
    https://localhost/a https://127.0.0.1/a https://2130706433/a https://0x7f.1/a https://0177.0.0.1/a https://[::1]/a https://[::ffff:127.0.0.1]/a
    https://100.64.0.1/a https://168.63.129.16/a https://[64:ff9b::7f00:1]/a https://[64:ff9b:1::a00:1]/a https://[2002:7f00:1::]/a
    https://[::7f00:1]/a https://[fd00:ec2::254]/a https://[fec0::1]/a https://[ff02::1]/a ssh://[64:ff9b:1::a00:1]/a
    https://169.254.169.254/latest https://10.0.0.1/a https://192.168.1.1:8080/a https://[fe80::1]/a https://user:pass@example.com/a
    https://example.com@127.0.0.1/a https://example.com/a?x=1 https://example.com https://metadata.google.internal/a https://0.0.0.0/a
    ssh://-oProxyCommand=x/a ssh://example.com/-x ssh://127.0.0.1/a ssh://2130706433/a ssh://[::1]/a ssh://a:b@example.com/x git@127.0.0.1:a
    -uhost:a --upload-pack=x git@-o:a git@example.com:-x git@example.com::x fd::17 https: ssh://`.split(/\s+/)
  test.each([
    ...refused,
    '',
    ' ',
    '/tmp/a\nb',
    '/tmp/\u202eb',
    'https://example.com/\0',
    'https://exa\u200bmple.com/x y\n',
    'x'.repeat(3000),
  ])('%j is refused before any process starts', async (location) => {
    await expect(fixture.mirrors.open(location, never)).rejects.toMatchObject({
      code: 'invalid_argument',
      detail: { field: 'repository' },
    })
    expect(await readdir(fixture.folder)).not.toContain('mirrors')
  })

  test.each([
    ['https://Example.com/org/app.git/', 'https://example.com/org/app.git', 'https'],
    ['ssh://git@example.com:2222/org/app.git', 'ssh://git@example.com:2222/org/app.git', 'ssh'],
    ['git@example.com:org/app.git', 'git@example.com:org/app.git', 'ssh'],
    ['/srv/./repos/../app/', '/srv/app', 'file'],
    ['/srv/with space:and colon', '/srv/with space:and colon', 'file'],
  ])('%j is %j', (location, address, protocol) => {
    expect(parseLocation(location)).toMatchObject({ address, protocol })
  })
})
