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

const validQuestion = { type: 'agent_question', questionId: 'q', text: 't' }

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
    ...[
      '{"type":"token_delta","tokens":1e300}',
      '{"type":"token_delta","tokens":2147483648}',
      '{"type":"token_delta","tokens":-1}',
      '{"type":"token_delta","tokens":0.5}',
      '{"type":"text_delta","text":""}',
      '{"type":"thinking_delta","text":"\\ud800"}',
    ].map((json) => `::tutti:: ${json}`),
    ...[
      { questionId: '' },
      { questionId: 'q\0' },
      { questionId: 'q\n' },
      { questionId: 'q\u202e' },
      { questionId: 'q'.repeat(201) },
      { text: '' },
      { text: ' \n' },
      { text: 'a\u0007' },
      { text: 't'.repeat(8193) },
      { options: [] },
      { options: [''] },
      { options: ['a\0'] },
      { options: [{ a: 1 }] },
      { options: ['o'.repeat(201)] },
      { options: Array.from({ length: 21 }, (_, index) => index) },
      { options: 'a' },
      { default: '' },
      { default: 1 },
    ].map((wrong) => `::tutti:: ${JSON.stringify({ ...validQuestion, ...wrong })}`),
    `::tutti:: {"type":"text_delta","text":"${'x'.repeat(70_000)}"}`,
  ])('stay output when they are none: %.60s', (line) => {
    const splitter = createDirectiveSplitter()
    expect(join([...splitter.push(`${line}\n`), ...splitter.end()])).toEqual([{ text: `${line}\n` }])
  })

  test.each([
    { type: 'text_delta', text: 'two\n\tlines\r\n🎵' },
    { type: 'text_delta', text: 'nul\0 \u001b[31mred' },
    { type: 'token_delta', tokens: 2147483647 },
    validQuestion,
    { ...validQuestion, text: 't'.repeat(8192), options: ['a'], default: 'a' },
  ])('are taken as they are: %j', (directive) => {
    expect(createDirectiveSplitter().push(`::tutti:: ${JSON.stringify(directive)}\n`)).toEqual([
      { directive },
    ])
  })

  test('take a null for a field that is not there', () => {
    const line = `::tutti:: ${JSON.stringify({ ...validQuestion, options: null, default: null })}\n`
    expect(createDirectiveSplitter().push(line)).toEqual([{ directive: validQuestion }])
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
