import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { safeJson, safeLine, safeText } from './terminal-text.ts'

const esc = '\u001b'
const attacks = {
  'title change': `${esc}]0;owned\u0007`,
  'clipboard write': `${esc}]52;c;b3duZWQ=${esc}\\`,
  hyperlink: `${esc}]8;;http://evil.example${esc}\\click${esc}]8;;${esc}\\`,
  'cursor move': `${esc}[2A${esc}[2K`,
  'clear screen': `${esc}[2J${esc}[H`,
  'alternate screen': `${esc}[?1049h`,
  'device query': `${esc}[6n`,
  'line overwrite': 'real\rfake',
  NUL: 'a\u0000b',
  backspace: 'rm\b\bls',
  '8-bit CSI': '\u009b2J',
  '8-bit OSC': '\u009d0;owned\u009c',
  'direction override': 'admin\u202egpj.exe',
  'direction isolate': '\u2066x\u2069',
  'zero width': 'a\u200bb',
  'line separator': 'a\u2028b',
}
// oxlint-disable-next-line no-control-regex -- what must never come out
const commanding = /[\u0000-\u0008\u000b-\u001a\u001c-\u001f\u007f-\u009f\u200b\u2028-\u202e\u2066-\u2069]/

describe('SEC-08 untrusted text in a terminal and in a pipe', () => {
  test.each(Object.entries(attacks))('%s is shown, not obeyed', (_name, text) => {
    for (const colors of [true, false]) {
      const shown = safeText(text, { colors })
      expect(shown).not.toMatch(commanding)
      expect(shown).not.toContain(esc)
      expect(shown).toContain('\\')
    }
  })

  test('SEC-08 colours survive in a terminal, and end with the text', () => {
    expect(safeText(`${esc}[31mred`, { colors: true })).toBe(`${esc}[31mred${esc}[0m`)
    expect(safeText(`${esc}[1;38;5;208mo${esc}[m`, { colors: true })).toBe(
      `${esc}[1;38;5;208mo${esc}[0m${esc}[0m`,
    )
  })

  test('SEC-08 colours are removed in a pipe', () => {
    expect(safeText(`${esc}[31mred${esc}[0m`, { colors: false })).toBe('red')
  })

  test.each(['8', '5', '8;31', '38;5', '38;2;1;2', '38;5;999', '99'])(
    'SEC-08 SGR %s gives no concealed or broken text',
    (code) => {
      expect(safeText(`${esc}[${code}mx`, { colors: true })).not.toMatch(new RegExp(`\\[${code}m`))
    },
  )

  test('SEC-08 a fake log line stays within its line', () => {
    expect(safeLine('done\n{"level":30,"msg":"deployed"}\r\nx')).toBe(
      'done\\n{"level":30,"msg":"deployed"}\\nx',
    )
  })

  test('SEC-08 JSON reads back exactly and has nothing that commands a terminal', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const json = safeJson({ text: Object.values(attacks).join('') + text })
        expect(JSON.parse(json)).toEqual({ text: Object.values(attacks).join('') + text })
        expect(json).not.toMatch(commanding)
        expect(json).not.toContain(esc)
      }),
    )
  })

  test('SEC-08 any text at all is safe', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(safeLine(text)).not.toMatch(commanding)
        expect(safeLine(text)).not.toMatch(/[\n\t\u001b]/)
        // oxlint-disable-next-line no-control-regex -- only colour sequences may be left
        expect(safeText(text, { colors: true }).replaceAll(/\u001b\[[0-9;]+m/g, '')).not.toContain(esc)
      }),
    )
  })

  test('ordinary text stays as it is', () => {
    const text = 'naïve 日本語 👩‍💻 → ok\n\tindented'
    expect(safeText(text, { colors: false })).toBe(text)
  })
})
