import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, readdir, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { passingName, withProcessLock } from '@tutti/processes'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createMirrors } from './mirrors.ts'
import { createFixture, never, userGit, type Fixture } from './test-fixture.ts'

let fixture: Fixture
let other: string
let root: string
const longAgo = new Date('2020-01-01')

beforeEach(async () => {
  fixture = await createFixture()
  fixture.commitAll()
  other = join(fixture.folder, 'other')
  userGit(fixture.folder, 'clone', '-q', fixture.source, other)
  root = join(fixture.folder, 'mirrors')
})
afterEach(() => fixture.remove())

const inUse = async () => [fixture.source]
const sweep = (unusedSince: number, mirrors = fixture.mirrors) => mirrors.sweep({ inUse, unusedSince }, never)

test('a mirror that nobody works on goes when nobody has opened it for long; one in use and a young one stay', async () => {
  const used = await fixture.mirrors.open(fixture.source, never)
  const unused = await fixture.mirrors.open(other, never)
  for (const { path } of [used, unused]) await utimes(path, longAgo, longAgo)
  expect(await sweep(longAgo.getTime() - 1)).toEqual([])
  await fixture.mirrors.open(other, never)
  expect(await sweep(Date.now() - 60_000)).toEqual([])
  await utimes(unused.path, longAgo, longAgo)
  // Another worker of this host sweeps at the same time.
  const both = await Promise.all([sweep(Date.now()), sweep(Date.now(), createMirrors({ root }))])
  expect(both.flat()).toEqual([unused.path])
  expect(existsSync(unused.path)).toBe(false)
  expect((await readdir(root)).filter((name) => name.endsWith('.source.git'))).toHaveLength(1)
  expect(await used.resolve('', never)).toMatch(/^[0-9a-f]{40}$/)
  expect(await (await fixture.mirrors.open(other, never)).resolve('', never)).toMatch(/^[0-9a-f]{40}$/)
})

test('a mirror that somebody begins to need while it is locked stays', async () => {
  const { path } = await fixture.mirrors.open(other, never)
  await utimes(path, longAgo, longAgo)
  let asked = 0
  const needed = async () => ((asked += 1) === 1 ? [] : [other])
  expect(await fixture.mirrors.sweep({ inUse: needed, unusedSince: Date.now() }, never)).toEqual([])
  expect(asked).toBe(2)
  expect(existsSync(path)).toBe(true)
})

test('a mirror that somebody has locked is left to the next sweep', async () => {
  const { path } = await fixture.mirrors.open(other, never)
  await utimes(path, longAgo, longAgo)
  await withProcessLock(`${path}.lock`, never, async () => expect(await sweep(Date.now())).toEqual([]))
  expect(await sweep(Date.now())).toEqual([path])
})

test('what killed processes left goes: checks, half-made mirrors, and what git had not finished; of the living it stays', async () => {
  const { path } = await fixture.mirrors.open(fixture.source, never)
  const { pid } = spawnSync('true')
  const folders = [`checks/check-${pid}-1-dead`, `checks/${passingName('check')}-living`]
  for (const name of folders) await mkdir(join(path, name), { recursive: true })
  await mkdir(`${path}.new`)
  await mkdir(join(root, `${'f'.repeat(32)}.source.git.new`))
  const files = ['objects/pack/tmp_pack_old', 'objects/tmp_obj_old', 'fast_import_crash_1']
  for (const name of files) {
    await writeFile(join(path, name), '')
    await utimes(join(path, name), longAgo, longAgo)
  }
  await writeFile(join(path, 'objects/pack/tmp_pack_young'), '')
  await sweep(0)
  expect(await readdir(join(path, 'checks'))).toEqual([`${passingName('check')}-living`])
  for (const name of files) expect(existsSync(join(path, name))).toBe(false)
  expect(existsSync(join(path, 'objects/pack/tmp_pack_young'))).toBe(true)
  expect((await readdir(root)).filter((name) => name.endsWith('.new'))).toEqual([])
  expect(userGit(path, 'fsck', '--no-dangling')).toBe('')
})
