import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { afterEach, beforeEach, expect, test } from 'vitest'

import { ensureLocalKey, localKeyFile } from './local-key.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tutti-key-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

test('many starters at once get one key, in a file for its user alone', async () => {
  const keys = await Promise.all(Array.from({ length: 20 }, () => ensureLocalKey(join(folder, 'data'))))
  expect(new Set(keys).size).toBe(1)
  expect(keys[0]).toMatch(/^[A-Za-z0-9_-]{43}$/)
  const path = join(folder, 'data', localKeyFile)
  expect(statSync(path).mode & 0o777).toBe(0o600)
  expect(readFileSync(path, 'utf8').trim()).toBe(keys[0])
  expect(readdirSync(join(folder, 'data'))).toEqual([localKeyFile])
})

test('a damaged file is said, not replaced', async () => {
  writeFileSync(join(folder, localKeyFile), 'short\n')
  await expect(ensureLocalKey(folder)).rejects.toMatchObject({ code: 'failed_precondition' })
  expect(readFileSync(join(folder, localKeyFile), 'utf8')).toBe('short\n')
})
