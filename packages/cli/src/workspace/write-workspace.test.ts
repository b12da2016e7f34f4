import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TuttiError } from '@tutti/core'
import type { ReadWorkspaceResponse } from '@tutti/proto'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { testParts } from './test-parts.ts'
import { writeWorkspace } from './write-workspace.ts'

let outside: string
let folder: string
beforeEach(() => {
  outside = mkdtempSync(join(tmpdir(), 'tutti-write-workspace-'))
  folder = join(outside, 'folder')
})
afterEach(() => rmSync(outside, { recursive: true, force: true }))

const whole = () => testParts(['deep/file', '100644', '1'], ['link', '120000', 'deep/file'])
/** All of a workspace but its end, at which something happens. */
async function* until(end: () => void): AsyncGenerator<ReadWorkspaceResponse> {
  for await (const part of whole()) {
    if (part.part.case === 'summary') end()
    yield part
  }
}
const fail = (error: Error) => () => {
  throw error
}
const unavailable = new TuttiError('unavailable', 'The server went away.')

function expectWritten(at: string): void {
  expect(readdirSync(at).toSorted()).toEqual(['deep', 'link'])
  expect(readFileSync(join(at, 'link'), 'utf8')).toBe('1')
}

test('a folder that is there stays itself, with its mode, and has only the workspace', async () => {
  mkdirSync(folder)
  chmodSync(folder, 0o700)
  const { ino, mode } = statSync(folder)
  await writeWorkspace(whole(), folder)
  expect(statSync(folder)).toMatchObject({ ino, mode })
  expectWritten(folder)
  expect(readdirSync(outside)).toEqual(['folder'])
})

test('a link to a folder stays a link', async () => {
  mkdirSync(folder)
  const link = join(outside, 'link')
  symlinkSync(folder, link)
  await writeWorkspace(whole(), link)
  expect(lstatSync(link).isSymbolicLink()).toBe(true)
  expectWritten(folder)
})

test('nothing is left of a workspace that did not come whole', async () => {
  await expect(writeWorkspace(until(fail(unavailable)), join(folder, 'new/one'))).rejects.toBe(unavailable)
  expect(readdirSync(outside)).toEqual([])
  mkdirSync(folder)
  await expect(writeWorkspace(until(fail(unavailable)), folder)).rejects.toBe(unavailable)
  expect(readdirSync(folder)).toEqual([])
})

test('what comes into the folder meanwhile stays, and nothing comes to it', async () => {
  mkdirSync(folder)
  const writing = writeWorkspace(
    until(() => writeFileSync(join(folder, 'link'), 'mine')),
    folder,
  )
  await expect(writing).rejects.toMatchObject(refusal(/something has come into it/, /with a new folder/))
  expect(readdirSync(folder)).toEqual(['link'])
  expect(readFileSync(join(folder, 'link'), 'utf8')).toBe('mine')
})

const refusal = (message: RegExp, next: RegExp) => ({
  code: 'failed_precondition',
  message: expect.stringMatching(message),
  detail: { flag: '--to', next: expect.stringMatching(next) },
})

const generic = /make it a folder that you may write to, or name another/
const noRoom = Object.assign(new Error('ENOSPC: no space left on device, write'), {
  code: 'ENOSPC',
  syscall: 'write',
})

test.each<[string, string, () => AsyncIterable<ReadWorkspaceResponse>, RegExp, RegExp]>([
  ['a file', 'file', whole, /--to .*file cannot be used: ENOTDIR/, generic],
  ['a folder below a file', 'file/new', whole, /cannot be used: ENOTDIR/, generic],
  ['a link to nothing', 'nowhere', whole, /is a link to what is not there/, /remove the link/],
  ['a folder with something in it', '.', whole, /something is in it/, /with a new folder/],
  ['a full disk', 'new', () => until(fail(noRoom)), /cannot be used: ENOSPC/, /make room on its disk/],
])('%s is refused with what to do', async (_, name, parts, message, next) => {
  writeFileSync(join(outside, 'file'), 'mine')
  symlinkSync(join(outside, 'nothing'), join(outside, 'nowhere'))
  await expect(writeWorkspace(parts(), join(outside, name))).rejects.toMatchObject(refusal(message, next))
  expect(readdirSync(outside).toSorted()).toEqual(['file', 'nowhere'])
})

test('a folder that may not be written to is refused with what to do', async () => {
  mkdirSync(folder)
  chmodSync(outside, 0o755)
  chmodSync(folder, 0o555)
  const user = process.geteuid!()
  // Root may write to all.
  if (user === 0) process.seteuid!('nobody')
  const written = writeWorkspace(whole(), folder).finally(() => user === 0 && process.seteuid!(user))
  await expect(written).rejects.toMatchObject(refusal(/cannot be used: EACCES/, generic))
})
