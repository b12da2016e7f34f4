import { expect, test } from 'vitest'

import { createLogger, visible } from './logger.ts'

/** SEC-08: colour codes, cursor moves, title, clipboard, hyperlink, overwriting, NUL, 8-bit controls, a fake line, direction marks. */
const evil =
  '\u001b[31m\u001b[2J\u001b]0;t\u0007\u001b]52;c;eA==\u0007\u001b]8;;http://x\u001b\\\r\0\u009b31m\u0085\u007f\n{"level":30,"msg":"forged"}\u2028\u202e\u2066'

test('SEC-08 an entry is one line, has no byte that commands a terminal, and a parser gets the exact text back', () => {
  const lines: string[] = []
  const log = createLogger({ level: 'info', destination: { write: (line) => void lines.push(line) } })
  log.info({ path: evil, nested: { [evil]: evil } }, evil)
  expect(lines).toHaveLength(1)
  // oxlint-disable-next-line eslint/no-control-regex -- what must not be there
  expect(lines[0]).toMatch(/^\{[^\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]*\}\n$/)
  expect(JSON.parse(lines[0]!)).toMatchObject({ path: evil, nested: { [evil]: evil }, msg: evil })
})

test('a text for people shows what is unsafe', () => {
  expect(visible('a\u001b[31mb\u202e')).toBe('a\\u001b[31mb\\u202e')
})
