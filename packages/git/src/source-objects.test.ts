import { cp, readFile, readlink, rename, rm, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { execFileSync } from 'node:child_process'
import { mirrorRefs } from '@tutti/core'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createMirrors } from './mirrors.ts'
import type { Mirror } from './port.ts'
import { agent, createFixture, never, put, userGit, type Fixture } from './test-fixture.ts'

const atMs = 1_700_000_000_000
let fixture: Fixture
let mirror: Mirror
let base: string

beforeEach(async () => {
  fixture = await createFixture()
  await writeFile(join(fixture.source, 'a.txt'), 'one\n')
  fixture.commitAll()
  await writeFile(join(fixture.source, 'a.txt'), 'one\ntwo\n')
  base = fixture.commitAll()
  mirror = await fixture.mirrors.open(fixture.source, never)
})
afterEach(() => fixture.remove())

const sourceOf = ({ sourceObjects }: Mirror) => dirname(sourceObjects)
/** Contents of every object of a repository that has the text. */
const find = (gitDir: string, text: string): boolean =>
  userGit(gitDir, 'cat-file', '--batch-all-objects', '--batch').includes(text)
const checkpoint = async (index: number, file: string, content: string, parent = base) => {
  const changes = [put(file, content)]
  const ref = mirrorRefs.checkpoint(agent(index))
  return (await mirror.commit({ parent, changes, ref, message: 'm', atMs }, never)).commit
}
const packOf = async (commit: string, from = mirror, start = base) => {
  const pack = await from.packBeyondSource({ commit, base: start }, never)
  return pack ? Buffer.concat(await Array.fromAsync(pack)) : undefined
}
/** A repository like an agent's clone: what the source has, and the pack. */
function readPack(pack: Uint8Array, name: string): string {
  const clone = join(fixture.folder, name)
  userGit(fixture.folder, 'init', '-q', clone)
  execFileSync('git', ['-C', clone, 'index-pack', '--stdin'], { input: pack })
  return clone
}

test('SEC-12 what agents and synthesis make is not among the objects of the source', async () => {
  const one = await checkpoint(1, 'one', 'secret of one\n')
  const two = await checkpoint(2, 'two', 'secret of two\n')
  const attempts = [
    { bcId: agent(1), commit: one },
    { bcId: agent(2), commit: two },
  ]
  const combined = await mirror.combine(
    { base, attempts, ref: 'refs/tutti/synthesis/x', message: 'm', atMs },
    never,
  )
  await fixture.mirrors.open(fixture.source, never)
  const source = sourceOf(mirror)
  expect(userGit(source, 'for-each-ref', '--format=%(refname)').split('\n')).toEqual([
    'refs/tutti/source/HEAD',
    'refs/tutti/source/heads/trunk',
  ])
  expect(find(source, 'secret of')).toBe(false)
  expect(find(mirror.path, 'secret of one')).toBe(true)
  for (const commit of [one, two, combined.commit])
    await expect(mirror.resolve(commit, never)).rejects.toMatchObject({ code: 'not_found' })
  expect(userGit(mirror.path, 'fsck', '--strict')).not.toMatch(/error|missing/)
  // An alternates file of the source's own would lead a sandbox on.
  await expect(readFile(join(mirror.sourceObjects, 'info/alternates'))).rejects.toMatchObject({
    code: 'ENOENT',
  })
})

test('SEC-12 a pack has one commit’s own objects and no other agent’s', async () => {
  await checkpoint(2, 'b.txt', 'secret of two\n')
  const first = await checkpoint(1, 'a.txt', 'changed\n')
  const second = await checkpoint(1, 'b.txt', 'more\n', first)
  const clone = readPack((await packOf(second))!, 'clone')
  // Two commits, two trees, two files: nothing that the source has either.
  const kinds = userGit(clone, 'cat-file', '--batch-all-objects', '--batch-check=%(objecttype)').split('\n')
  expect(kinds.toSorted()).toEqual(['blob', 'blob', 'commit', 'commit', 'tree', 'tree'])
  await writeFile(join(clone, '.git/objects/info/alternates'), `${mirror.sourceObjects}\n`)
  expect(userGit(clone, 'rev-list', second).split('\n')).toHaveLength(4)
  expect(userGit(clone, 'show', `${second}:a.txt`, `${second}:b.txt`)).toBe('changed\nmore')
  expect(find(clone, 'secret of two')).toBe(false)
})

test('for its files alone nothing is packed of the commits before it', async () => {
  const first = await checkpoint(1, 'a.txt', 'first\n')
  const second = await checkpoint(1, 'a.txt', 'second\n', first)
  const pack = await mirror.packBeyondSource({ commit: second, base, filesOnly: true }, never)
  const clone = readPack(Buffer.concat(await Array.fromAsync(pack!)), 'clone')
  const kinds = userGit(clone, 'cat-file', '--batch-all-objects', '--batch-check=%(objecttype)').split('\n')
  expect(kinds.toSorted()).toEqual(['blob', 'tree'])
  await writeFile(join(clone, '.git/objects/info/alternates'), `${mirror.sourceObjects}\n`)
  userGit(clone, 'read-tree', '-u', '--reset', await mirror.treeOf(second, never))
  expect(await readFile(join(clone, 'a.txt'), 'utf8')).toBe('second\n')
})

test('asks git nothing about a base that was resolved, and sends no pack for it', async () => {
  const commands: string[] = []
  const root = dirname(mirror.path)
  const logged = createMirrors({ root, log: ({ command }) => void commands.push(command) })
  const attached = await logged.attach(fixture.source, never)
  expect(await packOf(base, attached)).toBeUndefined()
  expect(commands).toEqual(['rev-parse'])
  const opened = await logged.open(fixture.source, never)
  await opened.resolve('', never)
  commands.length = 0
  expect(await packOf(base, opened)).toBeUndefined()
  expect(commands).toEqual([])
})

test('a commit that came back from the source needs no objects any more', async () => {
  const commit = await checkpoint(1, 'a.txt', 'delivered\n')
  expect(await mirror.push({ commit, branch: 'tutti/x' }, never)).toEqual({ outcome: 'pushed' })
  await fixture.mirrors.open(fixture.source, never)
  expect(await mirror.resolve('tutti/x', never)).toBe(commit)
  const clone = readPack((await packOf(commit))!, 'clone')
  expect(userGit(clone, 'cat-file', '--batch-all-objects', '--batch-check')).toBe('')
})

test('the folder can be moved', async () => {
  const commit = await checkpoint(1, 'a.txt', 'kept\n')
  const moved = join(fixture.folder, 'elsewhere')
  await rename(dirname(mirror.path), moved)
  mirror = await createMirrors({ root: moved }).attach(fixture.source, never)
  expect(await mirror.countChanges(base, commit, never)).toBe(1)
  await checkpoint(1, 'b.txt', 'more\n', commit)
})

test('a mirror of before gets the source’s store from what it has, without the source', async () => {
  const commit = await checkpoint(1, 'a.txt', 'secret of one\n')
  await mirror.updateRef(mirrorRefs.base(agent(1)), base, never)
  // As it was: everything in one repository.
  const old = mirror.path
  const source = sourceOf(mirror)
  await cp(mirror.sourceObjects, join(old, 'objects'), { recursive: true })
  await cp(join(source, 'refs/tutti/source'), join(old, 'refs/tutti/source'), { recursive: true })
  await rm(source, { recursive: true })
  await rm(join(old, 'objects/info/alternates'))
  await rm(join(old, 'shallow'), { force: true })
  await rename(fixture.source, `${fixture.source}.away`)

  const { mirrors } = fixture
  const all = await Promise.all(Array.from({ length: 4 }, () => mirrors.attach(fixture.source, never)))
  mirror = all[0]!
  expect(await mirror.resolve('', never)).toBe(base)
  expect(find(sourceOf(mirror), 'secret of one')).toBe(false)
  expect(await packOf(base)).toBeUndefined()
  expect(find(readPack((await packOf(commit))!, 'clone'), 'secret of one')).toBe(true)
  expect(await readFile(join(old, 'objects/info/alternates'), 'utf8')).toBe(
    `../../${basename(source)}/objects\n`,
  )

  await rename(`${fixture.source}.away`, fixture.source)
  await writeFile(join(fixture.source, 'b.txt'), 'b\n')
  const next = fixture.commitAll()
  expect(await (await mirrors.open(fixture.source, never)).resolve('', never)).toBe(next)
  expect(await mirror.readRef(mirrorRefs.checkpoint(agent(1)), never)).toBe(commit)
})

test('a base that the source’s store lacks is sent with its history', async () => {
  const commit = await checkpoint(1, 'a.txt', 'mine\n')
  const unknown = await checkpoint(2, 'a.txt', 'no commit of the source\n')
  const child = await checkpoint(3, 'b.txt', 'b\n', unknown)
  const clone = readPack((await packOf(child, mirror, unknown))!, 'clone')
  await writeFile(join(clone, '.git/objects/info/alternates'), `${mirror.sourceObjects}\n`)
  expect(userGit(clone, 'rev-list', child).split('\n')).toHaveLength(4)
  expect(find(clone, 'mine')).toBe(false)
  expect(commit).not.toBe(unknown)
})

test('commits on a shallow source end where its history does', async () => {
  const shallow = join(fixture.folder, 'shallow')
  userGit(fixture.folder, 'clone', '-q', '--depth=1', `file://${fixture.source}`, shallow)
  mirror = await fixture.mirrors.open(shallow, never)
  expect(await readlink(join(mirror.path, 'shallow'))).toBe(`../${basename(sourceOf(mirror))}/shallow`)
  const commit = await checkpoint(1, 'a.txt', 'changed\n')
  expect(userGit(mirror.path, 'rev-list', commit).split('\n')).toEqual([commit, base])
  expect(find(readPack((await packOf(commit))!, 'clone'), 'changed')).toBe(true)
})
