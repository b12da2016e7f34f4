import { readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { createFilesystemArchive, type Archive } from '@tutti/blob-store'
import { mirrorRefs, TuttiError } from '@tutti/core'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createMirrors } from './mirrors.ts'
import { packOnto } from './pack-names.ts'
import type { Mirror } from './port.ts'
import { agent, createFixture, gone, never, put, userGit, type Fixture } from './test-fixture.ts'

const atMs = 1_700_000_000_000
let fixture: Fixture
let mirror: Mirror
let base: string
let archive: Archive

beforeEach(async () => {
  fixture = await createFixture(
    (folder) => (archive = createFilesystemArchive({ root: join(folder, 'archive') })),
  )
  await writeFile(join(fixture.source, 'old.txt'), 'of the first commit only\n')
  fixture.commitAll()
  await rm(join(fixture.source, 'old.txt'))
  await writeFile(join(fixture.source, 'a.txt'), 'one\n')
  await writeFile(join(fixture.source, 'b.txt'), 'two\n')
  base = fixture.commitAll()
  mirror = await fixture.mirrors.open(fixture.source, never)
})
afterEach(() => fixture.remove())

/** A checkpoint as a session makes it. */
async function checkpoint(parent: string, ...changes: Parameters<typeof mirror.commit>[0]['changes']) {
  const ref = mirrorRefs.checkpoint(agent(1))
  const { commit } = await mirror.commit({ parent, changes, ref, message: 'm', atMs }, never)
  await mirror.keep({ commit, onto: parent, base }, never)
  return commit
}

/** Another host: the archive is all that it has. */
async function elsewhere() {
  await rm(fixture.source, { recursive: true, force: true })
  await rm(dirname(mirror.path), { recursive: true })
  return createMirrors({ root: join(fixture.folder, 'elsewhere'), archive })
}

const filesOf = async (from: Mirror, commit: string) => {
  const files: Record<string, string> = {}
  for await (const { path, content } of from.files(commit, never))
    files[Buffer.from(path).toString()] = Buffer.concat(await Array.fromAsync(content)).toString()
  return files
}

test('a checkpoint comes back on a host that has neither the mirror nor the source', async () => {
  await mirror.keepBase(base, never)
  const first = await checkpoint(base, put('a.txt', 'changed\n'))
  // Its content is in the source's store and not in its parent.
  const second = await checkpoint(first, put('new/old.txt', 'of the first commit only\n'), gone('b.txt'))
  const mirrors = await elsewhere()
  const restored = await mirrors.restore(fixture.source, second, never)
  expect(await filesOf(restored, second)).toEqual({
    'a.txt': 'changed\n',
    'new/old.txt': 'of the first commit only\n',
  })
  expect(await restored.countChanges(base, second, never)).toBe(3)
  // What sandboxes read has the base alone, and what git lacks behind it is told to it.
  expect(await restored.resolve(base, never)).toBe(base)
  await expect(restored.resolve(second, never)).rejects.toMatchObject({ code: 'not_found' })
  expect(userGit(restored.path, 'fsck', '--full', '--strict')).not.toMatch(/error|missing/)
  expect(userGit(restored.path, 'rev-list', '--count', second)).toBe('3')
  // Work goes on there.
  const next = { parent: second, changes: [put('c.txt', 'c\n')], message: 'm', atMs }
  const { commit } = await restored.commit({ ...next, ref: mirrorRefs.checkpoint(agent(1)) }, never)
  const pack = await restored.packBeyondSource({ commit, base }, never)
  expect(Buffer.concat(await Array.fromAsync(pack!)).length).toBeGreaterThan(100)
})

test('only what a commit adds is stored, and a base once for all', async () => {
  await mirror.keepBase(base, never)
  await mirror.keepBase(base, never)
  const one = await checkpoint(base, put('a.txt', 'one\n'), put('large', 'x'.repeat(100_000)))
  await checkpoint(one, put('b.txt', 'changed\n'))
  await createMirrors({ root: dirname(mirror.path), archive })
    .attach(fixture.source, never)
    .then((other) => other.keepBase(base, never))
  const names = await Promise.all(
    ['00', ...Array.from({ length: 255 }, (_, at) => (at + 1).toString(16).padStart(2, '0'))].map((folder) =>
      Array.fromAsync(archive.list(`commits/${folder}/`, never)),
    ),
  )
  const packs = names.flat()
  expect(packs.filter((name) => name.endsWith('.base.pack'))).toHaveLength(1)
  expect(packs).toHaveLength(3)
  expect(packs.some((name) => name.endsWith(`.${one}.pack`))).toBe(true)
})

test('a chain of packs is short, however many checkpoints there are', { timeout: 60_000 }, async () => {
  await mirror.keepBase(base, never)
  let commit = base
  for (let index = 0; index < 40; index += 1) commit = await checkpoint(commit, put('a.txt', `${index}\n`))
  const reads: string[] = []
  await elsewhere()
  const counted = {
    ...archive,
    stream(name: string, signal: AbortSignal) {
      reads.push(name)
      return archive.stream(name, signal)
    },
  }
  const mirrors = createMirrors({ root: join(fixture.folder, 'elsewhere'), archive: counted })
  const restored = await mirrors.restore(fixture.source, commit, never)
  expect(await filesOf(restored, commit)).toEqual({ 'a.txt': '39\n', 'b.txt': 'two\n' })
  expect(reads.length).toBeLessThan(12)
})

test('a checkpoint on one that was never kept can be brought back', async () => {
  await mirror.keepBase(base, never)
  const changes = [put('a.txt', 'before there was an archive\n')]
  const ref = mirrorRefs.checkpoint(agent(1))
  const before = await mirror.commit({ parent: base, changes, ref, message: 'm', atMs }, never)
  const commit = await checkpoint(before.commit, put('b.txt', 'after\n'))
  const restored = await (await elsewhere()).restore(fixture.source, commit, never)
  expect(await filesOf(restored, commit)).toEqual({
    'a.txt': 'before there was an archive\n',
    'b.txt': 'after\n',
  })
})

test('what is missing or damaged in the archive is data_loss, and nothing of it gets in', async () => {
  const commit = await checkpoint(base, put('a.txt', 'changed\n'))
  const mirrors = await elsewhere()
  await expect(mirrors.restore(fixture.source, commit, never)).rejects.toMatchObject({
    code: 'data_loss',
    detail: { commit, lacking: base },
  })
  const [name] = await Array.fromAsync(archive.list(`commits/${commit.slice(0, 2)}/${commit}.`, never))
  const whole = Buffer.concat(await Array.fromAsync(archive.stream(name!, never)))
  await archive.put(name!, whole.subarray(0, whole.length - 30), never)
  await expect(mirrors.restore(fixture.source, commit, never)).rejects.toMatchObject({
    code: 'data_loss',
    detail: { lacking: commit },
  })
  const made = await mirrors.attach(fixture.source, never)
  expect(userGit(made.path, 'count-objects')).toMatch(/^0 objects/)
})

test('a source that comes back is fetched as before', async () => {
  await mirror.keepBase(base, never)
  const commit = await checkpoint(base, put('a.txt', 'changed\n'))
  await rm(dirname(mirror.path), { recursive: true })
  const mirrors = createMirrors({ root: join(fixture.folder, 'elsewhere'), archive })
  await mirrors.restore(fixture.source, commit, never)
  await writeFile(join(fixture.source, 'a.txt'), 'three\n')
  const newest = fixture.commitAll()
  const opened = await mirrors.open(fixture.source, never)
  expect(await opened.resolve('', never)).toBe(newest)
  expect(await opened.push({ commit, branch: 'tutti/x' }, never)).toEqual({ outcome: 'pushed' })
  expect(userGit(fixture.source, 'log', '--format=%s', 'tutti/x').split('\n')).toHaveLength(3)
  // Who has the commit asks nobody.
  await rm(join(fixture.folder, 'archive'), { recursive: true })
  expect((await mirrors.restore(fixture.source, commit, never)).path).toBe(opened.path)
})

describe('a mirror that has lost part of a commit', () => {
  /** Every object that the commit adds lies by itself: a checkpoint is small. */
  const objectOf = (commit: string, path: string) => {
    const id = userGit(mirror.path, 'rev-parse', `${commit}:${path}`).trim()
    return join(mirror.path, 'objects', id.slice(0, 2), id.slice(2))
  }
  const damage = {
    missing: (file: string) => rm(file),
    async damaged(file: string) {
      const bytes = await readFile(file)
      bytes[bytes.length >> 1]! ^= 0xff
      await rm(file)
      await writeFile(file, bytes)
    },
  }

  test.each([
    ['missing', 'd/a.txt'],
    ['missing', 'd'],
    ['damaged', 'd/a.txt'],
    ['damaged', 'd'],
  ] as const)('gets what is %s from the archive: %s', async (how, path) => {
    const first = await checkpoint(base, put('d/a.txt', 'first\n'.repeat(100)))
    const second = await checkpoint(first, put('b.txt', 'second\n'))
    const request = { commit: second, base }
    expect(await fixture.mirrors.repair(fixture.source, request, never)).toBe(false)
    await damage[how](objectOf(second, path))
    expect(await fixture.mirrors.repair(fixture.source, request, never)).toBe(true)
    expect(await fixture.mirrors.repair(fixture.source, request, never)).toBe(false)
    expect(await filesOf(mirror, second)).toMatchObject({ 'd/a.txt': 'first\n'.repeat(100) })
  })

  test('says so when the archive has it no more, and not when the archive does not answer', async () => {
    const { mirrors, source, folder } = fixture
    const commit = await checkpoint(base, put('d/a.txt', 'first\n'))
    await damage.damaged(objectOf(commit, 'd/a.txt'))
    const silent: Archive = {
      ...archive,
      async *stream() {
        yield new Uint8Array()
        throw new TuttiError('unavailable', 'no answer')
      },
    }
    const withoutAnswer = createMirrors({ root: join(folder, 'mirrors'), archive: silent })
    const request = { commit, base }
    await expect(withoutAnswer.repair(source, request, never)).rejects.toMatchObject({ code: 'unavailable' })
    await damage.damaged(join(folder, 'archive', packOnto(commit, base)))
    await expect(mirrors.repair(source, request, never)).rejects.toMatchObject({
      code: 'data_loss',
      detail: { commit },
    })
  })
})
