import { fromBinary, fromJson, type DescField, type DescMessage, type JsonValue } from '@bufbuild/protobuf'
import { TuttiError } from '@tutti/core'

/** How a request message came over the wire. */
export type WireFormat = 'json' | 'binary'

/**
 * Why these bytes are not a request of this type, or undefined when they are. The library's own answer has neither the path of a
 * JSON key nor, for binary, the right code. Unknown JSON keys are a problem, unknown binary fields are not (API-01).
 */
export function requestProblem(
  desc: DescMessage,
  format: WireFormat,
  bytes: Uint8Array,
): TuttiError | undefined {
  if (format === 'binary') return binaryProblem(desc, bytes)
  let json: JsonValue
  try {
    json = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)) as JsonValue
  } catch {
    return new TuttiError('invalid_argument', 'The request is not JSON in UTF-8.', { field: '' })
  }
  const found = loneSurrogate(json, '') ?? jsonProblem(desc, json, '')
  if (!found) return undefined
  const where = found.path === '' ? 'The request' : found.path
  return new TuttiError('invalid_argument', `${where} ${found.message}.`, { field: found.path })
}

interface Problem {
  readonly path: string
  readonly message: string
}

function binaryProblem(desc: DescMessage, bytes: Uint8Array): TuttiError | undefined {
  try {
    fromBinary(desc, bytes)
    return undefined
  } catch (cause) {
    return new TuttiError(
      'invalid_argument',
      `The request is not a ${desc.typeName} in protobuf's binary form.`,
      { field: '' },
      cause,
    )
  }
}

/** JSON can spell half a character, which UTF-8 cannot; it would be stored as something else than was sent. */
function loneSurrogate(json: JsonValue, path: string): Problem | undefined {
  if (typeof json === 'string')
    return json.isWellFormed() ? undefined : { path, message: 'has half of a surrogate pair' }
  if (json === null || typeof json !== 'object') return undefined
  for (const [key, value] of Object.entries(json)) {
    if (!key.isWellFormed()) return { path, message: 'has half of a surrogate pair in a key' }
    const found = loneSurrogate(value as JsonValue, join(path, key, Array.isArray(json)))
    if (found) return found
  }
  return undefined
}

/** Narrows the failure of the library's parser down to the smallest part of the value that fails by itself. */
function jsonProblem(desc: DescMessage, json: JsonValue, path: string): Problem | undefined {
  const message = parseFailure(desc, json)
  if (message === undefined) return undefined
  if (json === null || typeof json !== 'object' || Array.isArray(json)) return { path, message }
  for (const [key, value] of Object.entries(json)) {
    const at = join(path, key, false)
    const field = desc.fields.find(({ jsonName, name }) => key === jsonName || key === name)
    if (!field) {
      if (isWellKnown(desc)) return { path, message }
      return { path: at, message: `is not a known key of ${desc.typeName}` }
    }
    const failure = parseFailure(desc, { [key]: value })
    if (failure !== undefined) return partProblem(field, value, at) ?? { path: at, message: failure }
  }
  return { path, message }
}

function partProblem(field: DescField, value: JsonValue, path: string): Problem | undefined {
  if (!field.message || value === null || typeof value !== 'object') return undefined
  if (field.fieldKind === 'message') return jsonProblem(field.message, value, path)
  for (const [key, item] of Object.entries(value)) {
    const found = jsonProblem(field.message, item as JsonValue, join(path, key, Array.isArray(value)))
    if (found) return found
  }
  return undefined
}

function parseFailure(desc: DescMessage, json: JsonValue): string | undefined {
  try {
    fromJson(desc, json, { ignoreUnknownFields: false })
    return undefined
  } catch (error) {
    // "cannot decode field x.y.Z.name from JSON: expected string, got 1": the path says the first half better.
    const text = error instanceof Error ? error.message : ''
    return `cannot be read: ${text.slice(text.lastIndexOf('JSON: ') + 1 ? text.lastIndexOf('JSON: ') + 6 : 0).slice(0, 200)}`
  }
}

const isWellKnown = ({ typeName }: DescMessage) => typeName.startsWith('google.protobuf.')

const join = (path: string, key: string, isIndex: boolean) => {
  const short = key.slice(0, 80)
  return isIndex ? `${path}[${short}]` : path === '' ? short : `${path}.${short}`
}
