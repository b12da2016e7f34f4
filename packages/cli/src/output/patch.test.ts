import fc from 'fast-check'
import { expect, test } from 'vitest'
import { patchJson } from './patch.ts'

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
