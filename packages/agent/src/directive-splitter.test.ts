import { describe, expect, test } from 'vitest'
import { createDirectiveSplitter, type OutputPiece } from './directive-splitter.ts'

const stream = [
  'out\n',
  '::tutti:: {"type":"text_delta","text":"hi"}\n',
  'more ::tutti:: {}\n',
  ':: no\n',
  'end',
].join('')
const expected = [
  { text: 'out\n' },
  { directive: { type: 'text_delta', text: 'hi' } },
  { text: 'more ::tutti:: {}\n:: no\nend' },
]

describe('directives in the output of a program', () => {
  test('are found wherever the output is cut', () => {
    for (let size = 1; size <= stream.length; size += 1) {
      const splitter = createDirectiveSplitter()
      const pieces: OutputPiece[] = []
      for (let at = 0; at < stream.length; at += size)
        pieces.push(...splitter.push(stream.slice(at, at + size)))
      expect(join([...pieces, ...splitter.end()]), `pieces of ${size}`).toEqual(expected)
    }
  })

  test('do not hold back a line that cannot become one', () => {
    const splitter = createDirectiveSplitter()
    expect(splitter.push('password: ')).toEqual([{ text: 'password: ' }])
    expect(splitter.push('::tutti')).toEqual([{ text: '::tutti' }])
    splitter.push('\n')
    expect(splitter.push('::tutti')).toEqual([])
    expect(splitter.push('!')).toEqual([{ text: '::tutti!' }])
  })

  test.each([
    '::tutti:: not json',
    '::tutti:: null',
    '::tutti:: {"type":"tool_call_started","callId":"x"}',
    '::tutti:: {"type":"turn_ended"}',
    '::tutti:: {"type":"agent_question","text":"no id"}',
    '::tutti:: {"type":"token_delta","tokens":"many"}',
    `::tutti:: {"type":"text_delta","text":"${'x'.repeat(70_000)}"}`,
  ])('stay output when they are none: %.60s', (line) => {
    const splitter = createDirectiveSplitter()
    expect(join([...splitter.push(`${line}\n`), ...splitter.end()])).toEqual([{ text: `${line}\n` }])
  })

  test('keep only the fields of their event', () => {
    const question = {
      type: 'agent_question',
      questionId: 'q',
      text: 't',
      options: ['a', 2],
      default: 'a',
      evil: 1,
    }
    expect(createDirectiveSplitter().push(`::tutti:: ${JSON.stringify(question)}\n`)).toEqual([
      {
        directive: { type: 'agent_question', questionId: 'q', text: 't', options: ['a', '2'], default: 'a' },
      },
    ])
  })
})

function join(pieces: readonly OutputPiece[]): OutputPiece[] {
  const joined: OutputPiece[] = []
  for (const piece of pieces) {
    const last = joined.at(-1)
    if ('text' in piece && last !== undefined && 'text' in last)
      joined[joined.length - 1] = { text: last.text + piece.text }
    else joined.push(piece)
  }
  return joined
}
