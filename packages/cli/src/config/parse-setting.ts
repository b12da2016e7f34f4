import { TuttiError, limits, settings, strategyNames, type SettingName } from '@tutti/core'
import { parseCount } from '../values/count.ts'
import { parseDuration, writeDuration } from '../values/duration.ts'
import { parseSize, writeSize } from '../values/size.ts'

/** A setting in its own unit: milliseconds, bytes, percent, a count, or text. */
export type SettingValue = number | string

const countBounds: Partial<Record<SettingName, readonly [number, number]>> = {
  // More agents at once than any one host can feed.
  'sandboxes.max': [1, 1000],
  'server.port': [0, 65_535],
  'worker.metrics_port': [0, 65_535],
  'ensemble.agents': [1, limits.maxChildren],
}

const choices: Partial<Record<SettingName, readonly string[]>> = {
  'log.level': ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'],
  'ensemble.strategy': strategyNames,
  'deliver.mode': ['ready', 'draft', 'none'],
  'workspace.watch': ['no', 'yes'],
  'sandboxes.provider': ['local', 'docker'],
  'sandboxes.pull': ['never', 'missing'],
  'workspace.ignored': ['none', 'small', 'all'],
  'workspace.env_files': ['no', 'yes'],
  'blobs.conditional_writes': ['no', 'yes'],
}

/**
 * A setting as written in a flag, a variable or a file. Numbers are in the setting's unit; text may carry a unit (`10m`,
 * `2GiB`, `150%`).
 *
 * @param where what to name in the error: the flag, the variable, or file and key
 * @throws TuttiError `invalid_argument` with detail `setting`.
 */
export function parseSetting(name: SettingName, raw: unknown, where: string): SettingValue {
  const { unit } = settings[name]
  if (typeof raw !== 'string' && typeof raw !== 'number') {
    throw new TuttiError('invalid_argument', `${where}: ${name} must be a number or a text.`, {
      setting: name,
    })
  }
  const text = String(raw).trim()
  switch (unit) {
    case 'flag':
    case 'text':
      if (choices[name]?.includes(text) === false) {
        const list = choices[name].join(', ')
        throw new TuttiError('invalid_argument', `${where}: ${name} must be one of ${list}.`, {
          setting: name,
        })
      }
      return text
    case 'ms':
      return /^\d+$/.test(text) ? Number(text) : parseDuration(text, where)
    case 'bytes':
      return parseSize(text, where)
    case 'percent':
      return parseCount(text.replace(/%$/, ''), where, 1, 1_000_000)
    case 'count':
      if (name === 'sandboxes.max' && text === 'cores') return text
      return parseCount(text, where, ...(countBounds[name] ?? [1, 1e12]))
  }
}

/** A setting's value with its unit, as it could be written in a file. */
export function writeSetting(name: SettingName, value: SettingValue): string {
  if (typeof value === 'string') return value
  switch (settings[name].unit) {
    case 'ms':
      return writeDuration(value)
    case 'bytes':
      return writeSize(value)
    case 'percent':
      return `${value}%`
    default:
      return String(value)
  }
}
