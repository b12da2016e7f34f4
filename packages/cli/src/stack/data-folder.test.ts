import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readEndpoint } from '@tutti/client'
import { TuttiError } from '@tutti/core'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { dataFormat, openDataFolder, removeEndpoint, writeEndpoint } from './data-folder.ts'

let root: string
let folder: string
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'tutti-data-'))
  folder = join(root, 'with space')
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

const failure = async (work: () => unknown): Promise<string> => {
  try {
    await work()
  } catch (error) {
    if (error instanceof TuttiError) return `${error.code}: ${error.message}`
    throw error
  }
  throw new Error('it was accepted')
}

test('a new folder is private and has its format; opening it again changes nothing', () => {
  openDataFolder(folder)
  expect(statSync(folder).mode & 0o777).toBe(0o700)
  expect(readFileSync(join(folder, 'format'), 'utf8')).toBe(`${dataFormat}\n`)
  expect(openDataFolder(folder).path).toBe(folder)
})

test('missing folders above it are made, and where none can be made that is said', async () => {
  openDataFolder(join(folder, 'a', 'b'))
  expect(statSync(join(folder, 'a')).mode & 0o777).toBe(0o700)
  writeFileSync(join(root, 'file'), '')
  expect(await failure(() => openDataFolder(join(root, 'file')))).toMatch(/failed_precondition: .*EEXIST/)
  expect(await failure(() => openDataFolder(join(root, 'file', 'a')))).toMatch(/EEXIST.*--data-dir/)
})

test.runIf(existsSync('/proc/self'))(
  'below /proc the answer is an error, not an endless search',
  async () => {
    expect(await failure(() => openDataFolder('/proc/tutti/data'))).toMatch(/ENOENT.*--data-dir/)
  },
)

test.each(['2', '999', 'x', ''])('format %j is refused', async (text) => {
  openDataFolder(folder)
  writeFileSync(join(folder, 'format'), text)
  expect(await failure(() => openDataFolder(folder))).toMatch(/^failed_precondition: .*(format \d+|damaged)/)
})

test('the endpoint is found while its process lives, and removed only by that process', async () => {
  openDataFolder(folder)
  const keyFile = join(folder, 'key')
  writeFileSync(keyFile, 'secret\n', { mode: 0o600 })
  const endpoint = {
    address: 'http://127.0.0.1:1',
    pid: process.pid,
    startedAt: new Date(0).toISOString(),
    keyFile,
  }
  expect(await readEndpoint(folder)).toBeUndefined()

  writeEndpoint(folder, endpoint)
  expect(statSync(join(folder, 'endpoint.json')).mode & 0o777).toBe(0o600)
  expect(await readEndpoint(folder)).toEqual({ ...endpoint, key: 'secret' })

  chmodSync(keyFile, 0o644)
  expect(await failure(() => readEndpoint(folder))).toMatch(/^permission_denied: .*chmod 600/)
  chmodSync(keyFile, 0o600)

  // Above the largest number a process can have.
  writeEndpoint(folder, { ...endpoint, pid: 2 ** 30 })
  expect(await readEndpoint(folder)).toBeUndefined()
  removeEndpoint(folder)
  expect(readFileSync(join(folder, 'endpoint.json'), 'utf8')).toContain('1073741824')

  writeEndpoint(folder, endpoint)
  removeEndpoint(folder)
  expect(await readEndpoint(folder)).toBeUndefined()
})

test('a damaged endpoint file says what to do', async () => {
  openDataFolder(folder)
  writeFileSync(join(folder, 'endpoint.json'), '{"address":1}')
  expect(await failure(() => readEndpoint(folder))).toMatch(/^failed_precondition: .*remove the file/)
})
