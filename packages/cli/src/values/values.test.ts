import { TuttiError } from '@tutti/core'
import { describe, expect, test } from 'vitest'
import { parseCount } from './count.ts'
import { formatDuration, parseDuration, writeDuration } from './duration.ts'
import { parseSize, writeSize } from './size.ts'

const refusal = (work: () => unknown): string => {
  try {
    work()
  } catch (error) {
    return error instanceof TuttiError ? `${error.code}: ${error.message}` : 'another error'
  }
  return 'accepted'
}

describe('durations', () => {
  test.each([
    ['90s', 90_000],
    ['10m', 600_000],
    ['2h', 7_200_000],
    ['1h30m', 5_400_000],
    ['500ms', 500],
    ['1.5s', 1500],
    ['7d', 604_800_000],
  ])('%s', (text, ms) => expect(parseDuration(text, '--x')).toBe(ms))

  test.each(['', '10', '-5s', '5 s', 's', '1y', '10m5', '1e3s'])('%j is refused with the flag', (text) =>
    expect(refusal(() => parseDuration(text, '--child-timeout'))).toMatch(/--child-timeout.*90s, 10m or 2h/),
  )

  test.each([
    [40, '40ms'],
    [4250, '4.2s'],
    [59_990, '59.9s'],
    [65_000, '1m05s'],
    [7_380_000, '2h03m'],
    [273_600_000, '3d4h'],
  ])('%d is shown as %s', (ms, text) => expect(formatDuration(ms)).toBe(text))

  test('what is written reads back', () => {
    for (const ms of [1, 1500, 60_000, 5_400_000, 86_400_000])
      expect(parseDuration(writeDuration(ms), 'x')).toBe(ms)
  })
})

describe('sizes', () => {
  test.each([
    ['4096', 4096],
    ['512MiB', 512 * 1024 ** 2],
    ['2GiB', 2 * 1024 ** 3],
    ['1.5g', 1.5 * 1024 ** 3],
    ['3kb', 3072],
  ])('%s', (text, bytes) => expect(parseSize(text, 'x')).toBe(bytes))

  test.each(['', '-1', '5 apples', 'GiB', '1PiB'])('%j is refused', (text) =>
    expect(refusal(() => parseSize(text, 'x'))).toMatch(/512MiB or 2GiB/),
  )

  test('what is written reads back', () => {
    for (const bytes of [1, 1024, 2 * 1024 ** 3]) expect(parseSize(writeSize(bytes), 'x')).toBe(bytes)
  })
})

test('ENS-08 counts below and above the bounds are refused with the bounds', () => {
  expect(parseCount('50', '--agents', 1, 50)).toBe(50)
  for (const text of ['0', '51', '-1', '1.5', '', 'x', '0x10']) {
    expect(refusal(() => parseCount(text, '--agents', 1, 50))).toMatch(/--agents.*from 1 to 50/)
  }
})
