import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createLogFile, serverLogFile, withWarningsOn } from './server-log.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tutti-log-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

test('lines are appended to a private file', () => {
  createLogFile(folder, () => {}).write('a\n')
  createLogFile(folder, () => {}).write('b\n')
  expect(readFileSync(serverLogFile(folder), 'utf8')).toBe('a\nb\n')
  expect(statSync(serverLogFile(folder)).mode & 0o777).toBe(0o600)
})

test('a full disk is said once, and nothing is thrown', (context) => {
  if (!existsSync('/dev/full')) return context.skip('this system has no /dev/full')
  symlinkSync('/dev/full', serverLogFile(folder))
  const said: string[] = []
  const log = createLogFile(folder, (line) => said.push(line))
  log.write('a\n')
  log.write('b\n')
  expect(said).toEqual([`The log ${serverLogFile(folder)} cannot be written (ENOSPC); lines are lost.`])
})

test('a terminal gets warnings and errors only, the file everything', () => {
  const shown: string[] = []
  const log = withWarningsOn(
    { write: (text) => void shown.push(String(text)) },
    createLogFile(folder, () => {}),
  )
  const lines = [20, 30, 40, 50].map((level) => `${JSON.stringify({ level })}\n`)
  for (const line of lines) log.write(line)
  expect(shown).toEqual(lines.slice(2))
  expect(readFileSync(serverLogFile(folder), 'utf8')).toBe(lines.join(''))
})
