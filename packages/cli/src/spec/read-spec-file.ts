import { closeSync, openSync, readSync } from 'node:fs'
import { resolve } from 'node:path'
import {
  create,
  fromJson,
  ScalarType,
  type DescField,
  type DescMessage,
  type JsonValue,
} from '@bufbuild/protobuf'
import { TuttiError } from '@tutti/core'
import { EnsembleSpecSchema, type EnsembleSpec } from '@tutti/proto'
import { parseDocument } from 'yaml'
import { parseDuration } from '../values/duration.ts'
import { parseSize } from '../values/size.ts'

/** A spec from a file; `repository` is apart when the file gives it as a path or URL in one text. */
export interface SpecFile {
  readonly spec: EnsembleSpec
  readonly repository?: string
}

/**
 * Reads an ensemble file: the protobuf JSON of `tutti.v1.EnsembleSpec` as YAML. On top of protobuf JSON, people may write
 * durations as `10m`, sizes as `2GiB`, enum values by their last word (`draft`), an agent as its spec alone, and the
 * repository as a path or URL. Keys that the schema does not have are refused.
 *
 * @throws TuttiError `invalid_argument` that names the file and the place in it.
 */
export function readSpecFile(path: string, cwd: string): SpecFile {
  return parseSpec(readText(path, resolve(cwd, path)), path)
}

/** A prompt has its place in a file, more has not; a device would never end. */
const maxFileBytes = 1 << 20

const whyUnreadable: Readonly<Record<string, string>> = {
  ENOENT: 'does not exist',
  EISDIR: 'is a folder',
  EACCES: 'may not be read by this user',
}

function readText(path: string, fullPath: string): string {
  const buffer = Buffer.alloc(maxFileBytes + 1)
  let length = 0
  try {
    const file = openSync(fullPath, 'r')
    try {
      for (let count = -1; count !== 0 && length < buffer.length; length += count)
        count = readSync(file, buffer, length, buffer.length - length, null)
    } finally {
      closeSync(file)
    }
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    throw new TuttiError(
      'invalid_argument',
      `${fullPath} ${whyUnreadable[code] ?? `cannot be read (${code})`}. Give the path of an ensemble file to --file.`,
      { path, field: '--file' },
      error,
    )
  }
  if (length <= maxFileBytes) return buffer.toString('utf8', 0, length)
  throw new TuttiError(
    'invalid_argument',
    `${path} is larger than 1 MiB, so it is no ensemble file. Give the path of one to --file.`,
    { path, field: '--file' },
  )
}

/** As {@link readSpecFile} on the text itself. */
export function parseSpec(text: string, path: string): SpecFile {
  const value = parseYaml(text, path)
  if (!isObject(value)) {
    throw new TuttiError(
      'invalid_argument',
      `${path} must be a mapping, as in "prompt: …" and "repository: …".`,
      { path },
    )
  }
  const { repository, ...rest } = value
  const inOneText = typeof repository === 'string'
  const json = toJson(EnsembleSpecSchema, inOneText ? rest : value, path, '')
  try {
    const spec = fromJson(EnsembleSpecSchema, json, { ignoreUnknownFields: false })
    return inOneText ? { spec, repository } : { spec }
  } catch (error) {
    throw new TuttiError('invalid_argument', `${path}: ${plain((error as Error).message)}`, { path }, error)
  }
}

export const emptySpec = (): SpecFile => ({ spec: create(EnsembleSpecSchema) })

function parseYaml(text: string, path: string): unknown {
  const document = parseDocument(text, { prettyErrors: true, strict: true, uniqueKeys: true })
  // A warning is about a tag that is not known here, so its value would be another than was meant.
  const [problem] = [...document.errors, ...document.warnings]
  if (problem) throw refuse(problem, problem.linePos?.[0].line ?? 1)
  try {
    return document.toJS({ maxAliasCount: 100 })
  } catch (error) {
    throw refuse(error as Error, 1)
  }

  function refuse(error: Error, line: number): TuttiError {
    const [reason = ''] = error.message.split('\n')
    // The library ends with the place, which stands in front here, and an announcement of the lines that were cut off.
    const plain = reason.replace(/ at line \d+, column \d+:?$/, '').replace(/[.:]$/, '')
    return new TuttiError('invalid_argument', `${path}:${line}: ${plain}.`, { path, line }, error)
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Rewrites what people may write into what protobuf JSON wants, along the schema. */
function toJson(desc: DescMessage, value: Record<string, unknown>, path: string, at: string): JsonValue {
  const result: Record<string, JsonValue> = {}
  for (const [key, given] of Object.entries(value)) {
    const field = desc.fields.find((candidate) => candidate.name === key || candidate.jsonName === key)
    const where = at === '' ? key : `${at}.${key}`
    if (!field) {
      throw new TuttiError('invalid_argument', `${path}: ${where} is not a key. ${knownKeys(desc, value)}`, {
        path,
        field: where,
      })
    }
    if (given === null) continue
    result[key] = fieldToJson(field, given, path, where)
  }
  return result
}

/** Keys in the spelling that this part of the file has. */
function knownKeys({ fields }: DescMessage, value: Record<string, unknown>): string {
  const snake = Object.keys(value).some((key) => key.includes('_'))
  const names = fields.map(({ name, jsonName }) => (snake ? name : jsonName))
  const compound = fields.find(({ name, jsonName }) => name !== jsonName)
  const other = compound && (snake ? compound.jsonName : compound.name)
  return `Known here: ${names.join(', ')}.${other === undefined ? '' : ` They may also be written like ${other}.`}`
}

function fieldToJson(field: DescField, given: unknown, path: string, where: string): JsonValue {
  if (field.fieldKind === 'list' && Array.isArray(given)) {
    return given.map((item: unknown, index) => {
      if (field.listKind !== 'message') return item as JsonValue
      return messageToJson(field.message, item, path, `${where}[${index}]`)
    })
  }
  if (field.fieldKind === 'message') return messageToJson(field.message, given, path, where)
  if (field.fieldKind === 'enum' && typeof given === 'string') {
    const wanted = given.toUpperCase()
    const value = field.enum.values.find(({ name }) => name === wanted || name.endsWith(`_${wanted}`))
    if (value) return value.name
    const prefix = (field.enum.sharedPrefix ?? '').length
    const known = field.enum.values.slice(1).map(({ name }) => name.slice(prefix).toLowerCase())
    throw new TuttiError('invalid_argument', `${path}: ${where} must be one of ${known.join(', ')}.`, {
      path,
      field: where,
    })
  }
  const isBytes =
    field.fieldKind === 'scalar' && field.scalar === ScalarType.UINT64 && field.name.endsWith('_bytes')
  if (isBytes && typeof given === 'string') return String(parseSize(given, `${path}: ${where}`))
  return given as JsonValue
}

function messageToJson(desc: DescMessage, given: unknown, path: string, where: string): JsonValue {
  if (desc.typeName === 'google.protobuf.Duration') {
    if (typeof given === 'string') return `${parseDuration(given, `${path}: ${where}`) / 1000}s`
    throw new TuttiError('invalid_argument', `${path}: ${where} must be a duration like 90s, 10m or 2h.`, {
      path,
      field: where,
    })
  }
  if (desc.typeName === 'tutti.v1.AgentSpec' && typeof given === 'string') return { spec: given }
  return isObject(given) ? toJson(desc, given, path, where) : (given as JsonValue)
}

/** The library's words without its type names. */
const plain = (message: string): string =>
  message.replace(/^cannot decode (message|field) tutti\.v1\.\w+\.?(\w*) from JSON: /, '$2 ')
