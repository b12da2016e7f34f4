import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TuttiError } from '@tutti/core'
import fc from 'fast-check'
import pc from 'picocolors'
import { expect, test } from 'vitest'
import { collectPatch, patchJson, renderPatch, wholePatch } from './patch.ts'

const header = 'diff --git a/name b/name\n--- a/name\n+++ b/name\n@@ -0,0 +1 @@\n+'

test('a patch in UTF-8 is text in JSON, a byte order mark included', () => {
  const text = `${header}\uFEFFnaïve 😀\r\n`
  expect(patchJson(Buffer.from(text))).toEqual({ patch: text })
  expect(patchJson(new Uint8Array())).toEqual({ patch: '' })
})

test('one byte that is not UTF-8 makes it base64', () => {
  const bytes = Buffer.from(`${header}na\u00efve\n`, 'latin1')
  expect(patchJson(bytes)).toEqual({ patch_base64: bytes.toString('base64') })
})

test('JSON gives back the very bytes', () => {
  fc.assert(
    fc.property(fc.oneof(fc.uint8Array(), fc.string({ unit: 'grapheme' }).map(Buffer.from)), (bytes) => {
      const read = JSON.parse(JSON.stringify(patchJson(bytes))) as Record<string, string>
      const back = read['patch'] ?? Buffer.from(read['patch_base64']!, 'base64')
      expect(Buffer.from(back)).toEqual(Buffer.from(bytes))
    }),
  )
})

test('a person sees no binary contents and no control characters, and each other line', () => {
  const binary =
    'diff --git a/x b/x\nindex 1..2\nGIT binary patch\nliteral 3\nKcmYzz\n\nliteral 0\nHc$@<O00001\n\n'
  const text = `${header}\u001b[31mGIT binary patch\r\n`
  const { lines } = renderPatch({ bytes: Buffer.from(binary + text) }, pc.createColors(false))
  expect(lines.slice(0, 3)).toEqual(['diff --git a/x b/x', 'index 1..2', 'GIT binary patch'])
  expect(lines.slice(3, 7)).toEqual(header.split('\n').slice(0, 4))
  expect(lines.slice(7)).toEqual([String.raw`+\u{1b}[31mGIT binary patch`])
})

test('the start of a patch is shown with why it ends, and is never taken for the whole', async () => {
  const error = new TuttiError('resource_exhausted', 'The patch is too long.', { limit: 1 })
  const pieces = async function* () {
    yield { baseCommit: 'a', commit: 'b', filesChanged: 1, patch: Buffer.from(header) }
    throw error
  }
  const patch = await collectPatch(pieces())
  expect(renderPatch(patch, pc.createColors(false)).lines.at(-1)).toBe('[cut here] The patch is too long.')
  expect(() => wholePatch(patch)).toThrow(error)
})

test('REC-08 the names of files are plain to see in the lines in front of a hunk, and hunks stay as they are', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tutti-patch-'))
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@localhost', ...args], { cwd: folder })
  const write = (name: string | Buffer, content: string) =>
    writeFileSync(Buffer.concat([Buffer.from(`${folder}/`), Buffer.from(name as string)]), content)
  try {
    git('init', '-q')
    write('old name', 'long enough to be found again\n')
    write('x', '-- a/x\n')
    git('add', '-A')
    git('commit', '-qm', 'before')
    git('mv', 'old name', 'cafe\u0301')
    write('x', '++ b/x\n')
    write('end ', 'e\n')
    write('empty\n', '')
    write(Buffer.from([0x66, 0xff]), 'f\n')
    git('add', '-A')
    const bytes = git('-c', 'core.quotePath=false', 'diff', '--cached', '--binary', '-M')
    const { lines } = renderPatch({ bytes }, pc.createColors(false))
    const names = lines.filter((line) => /^(diff|---|\+\+\+|rename)/.test(line))
    expect(names).toEqual([
      String.raw`diff --git a/old name "b/cafe\u{301}"`,
      'rename from old name',
      String.raw`rename to "cafe\u{301}"`,
      String.raw`diff --git "a/empty\n" "b/empty\n"`,
      String.raw`diff --git "a/end\u{20}" "b/end\u{20}"`,
      '--- /dev/null',
      String.raw`+++ "b/end\u{20}"`,
      String.raw`diff --git "a/f\xff" "b/f\xff"`,
      '--- /dev/null',
      String.raw`+++ "b/f\xff"`,
      'diff --git a/x b/x',
      '--- a/x',
      '+++ b/x',
      '--- a/x',
      '+++ b/x',
    ])
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
