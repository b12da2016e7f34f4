import { randomBytes } from 'node:crypto'
import { access, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
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

  /** All that the mirror has of its own in one pack; `break` damages it at the share of its length that is given. */
  async function packed() {
    const path = join(mirror.path, 'objects', 'pack')
    userGit(mirror.path, 'repack', '-adlq')
    const [pack = ''] = (await readdir(path)).filter((name) => name.endsWith('.pack'))
    const change = async (file: string, at: (length: number) => number) => {
      const bytes = await readFile(file)
      bytes[at(bytes.length)]! ^= 0xff
      await rm(file)
      await writeFile(file, bytes)
    }
    return {
      offsetOf(id: string) {
        const index = join(path, pack.replace(/pack$/, 'idx'))
        const listing = userGit(mirror.path, 'verify-pack', '-v', index)
        const line = listing.split('\n').find((text) => text.startsWith(id))!
        const [size, start] = line.split(/ +/).slice(-2).map(Number)
        return start! + (size! >> 1)
      },
      file: join(path, pack),
      damage: (at: (length: number) => number) => change(join(path, pack), at),
      damageIndex: () => change(join(path, pack.replace(/pack$/, 'idx')), (length) => length - 30),
    }
  }
  /** Bytes that no pack makes smaller. */
  const incompressible = () => randomBytes(20_000).toString('base64')

  test('keeps what a damaged pack has of other agents, also when the archive does not answer', async () => {
    const ours = await checkpoint(base, put('ours', incompressible()))
    const texts = Array.from({ length: 5 }, incompressible)
    const ref = mirrorRefs.checkpoint(agent(2))
    const changes = texts.map((text, index) => put(`theirs/${index}`, text))
    // Not in the archive yet.
    const { commit: theirs } = await mirror.commit({ parent: base, changes, ref, message: 'm', atMs }, never)
    const pack = await packed()
    const at = pack.offsetOf(userGit(mirror.path, 'rev-parse', `${ours}:ours`))
    await pack.damage(() => at)
    const silent: Archive = {
      ...archive,
      async *stream() {
        yield new Uint8Array()
        throw new TuttiError('unavailable', 'no answer')
      },
    }
    const request = { commit: ours, base }
    const withoutAnswer = createMirrors({ root: join(fixture.folder, 'mirrors'), archive: silent })
    await expect(withoutAnswer.repair(fixture.source, request, never)).rejects.toMatchObject({
      code: 'unavailable',
    })
    const theirFiles = Object.fromEntries(texts.map((text, index) => [`theirs/${index}`, text]))
    expect(await filesOf(mirror, theirs)).toMatchObject(theirFiles)
    const next = { parent: theirs, changes: [put('next', 'next\n')], message: 'm', atMs, ref }
    const { commit } = await mirror.commit(next, never)
    await mirror.keep({ commit, onto: theirs, base }, never)

    expect(await fixture.mirrors.repair(fixture.source, request, never)).toBe(true)
    expect(await filesOf(mirror, commit)).toMatchObject({ ...theirFiles, next: 'next\n' })
    expect(userGit(mirror.path, 'fsck', '--full', '--strict')).not.toMatch(/error|missing/)
  })

  test.each(['head', 'sum', 'index'] as const)(
    'keeps all of a pack whose %s alone is damaged',
    async (part) => {
      const ours = await checkpoint(base, put('ours', incompressible()))
      const lost = await checkpoint(base, put('lost', 'lost\n'))
      const pack = await packed()
      if (part === 'head') await pack.damage(() => 11)
      else if (part === 'sum') await pack.damage((length) => length - 5)
      else await pack.damageIndex()
      const theirs = await checkpoint(base, put('theirs', 'theirs\n'))
      await damage.damaged(objectOf(theirs, 'theirs'))
      expect(await fixture.mirrors.repair(fixture.source, { commit: theirs, base }, never)).toBe(true)
      for (const commit of [ours, lost, theirs])
        expect(await fixture.mirrors.repair(fixture.source, { commit, base }, never)).toBe(false)
      expect(userGit(mirror.path, 'fsck', '--full', '--strict')).not.toMatch(/error|missing/)
    },
  )

  test.each([
    // EIO, as from a bad sector.
    ['that the disk cannot read any more', (file: string) => symlink('/proc/self/mem', file)],
    ['that is gone and has left its index', () => Promise.resolve()],
  ])('gets all of a pack from the archive %s', async (_what, leave) => {
    const commit = await checkpoint(base, put('ours', incompressible()))
    const { file } = await packed()
    await rm(file)
    await leave(file)
    expect(await fixture.mirrors.repair(fixture.source, { commit, base }, never)).toBe(true)
    expect(await fixture.mirrors.repair(fixture.source, { commit, base }, never)).toBe(false)
  })

  test('is not one whose host lacks space or memory: nothing is lost then, and nothing is moved', async () => {
    const { source, folder } = fixture
    const commit = await checkpoint(base, put('large', incompressible()), put('long', 'x'.repeat(30_000_000)))
    const limits = { space: "trap '' XFSZ; ulimit -f 8", memory: 'ulimit -v 25000' }
    for (const limit of Object.values(limits)) {
      const gitPath = join(folder, 'limited-git')
      // What is read is not limited: other commands work.
      const script = `#!/bin/sh\ncase " $* " in *" index-pack "*) ${limit};; esac\nexec git "$@"\n`
      await writeFile(gitPath, script, { mode: 0o755 })
      const mirrors = createMirrors({ root: join(folder, 'mirrors'), archive, gitPath })
      await expect(mirrors.repair(source, { commit, base }, never)).rejects.toMatchObject({
        code: 'unavailable',
        message: expect.stringContaining('lacks') as string,
      })
      const fresh = createMirrors({ root: join(folder, 'fresh'), archive, gitPath })
      await mirror.keepBase(base, never)
      await expect(fresh.restore(source, commit, never)).rejects.toMatchObject({ code: 'unavailable' })
    }
    await expect(access(join(mirror.path, 'damaged'))).rejects.toThrow('ENOENT')
  })
})
