/* What files are that are not read.  See data_foreign.h.
 *
 * Each row of the table has bytes at a place, or a test, and a sentence on how to get at the rows.  A file whose shape
 * and type were said on the command line is read as raw values, whatever it looks like. */
#include "data_foreign.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "data/data_internal.h"

struct data_foreign {
    const char *name; /* with its article */
    const char *mark; /* the bytes at `place`; NULL: `test` says */
    size_t mark_bytes, place;
    bool is_text; /* it may be without control characters, as tables are: others that begin so are tables */
    bool (*test)(const unsigned char *head, size_t size);
    const char *how; /* to get at the rows; '@' is the file; NULL when there is nothing to say */
};

/* ---- what takes more than bytes at a place ----------------------------------------------------------------------- */

/* The first byte that is not white, after a UTF-8 mark. */
static size_t skip_white(const unsigned char *head, size_t size, size_t at)
{
    if (at == 0 && size >= 3 && memcmp(head, "\xef\xbb\xbf", 3) == 0)
        at = 3;
    while (at < size && strchr(" \t\r\n", head[at]) && head[at])
        at++;
    return at;
}

static bool starts_with(const unsigned char *head, size_t size, const char *text)
{
    const size_t at = skip_white(head, size, 0), length = strlen(text);
    return size - at >= length && strncasecmp((const char *)head + at, text, length) == 0;
}

static bool is_html(const unsigned char *head, size_t size)
{
    return starts_with(head, size, "<!doctype html") || starts_with(head, size, "<html");
}

static bool is_xml(const unsigned char *head, size_t size)
{
    return starts_with(head, size, "<?xml") || starts_with(head, size, "<svg");
}

/* An object with a key, or a list of objects, lists, texts or numbers: no row of a table begins so. */
static bool is_json(const unsigned char *head, size_t size)
{
    size_t at = skip_white(head, size, 0);
    if (at == size || (head[at] != '{' && head[at] != '['))
        return false;
    const bool is_list = head[at] == '[';
    at = skip_white(head, size, at + 1);
    if (at == size)
        return false;
    if (!is_list)
        return head[at] == '"' || head[at] == '}';
    if (strchr("{[\"", head[at]) && head[at])
        return true;
    const size_t start = at;
    while (at < size && strchr("+-.0123456789eE", head[at]) && head[at])
        at++;
    return at > start && (at = skip_white(head, size, at)) < size && head[at] == ',';
}

/* Protocols 2 to 5; older ones are text. */
static bool is_pickle(const unsigned char *head, size_t size)
{
    if (size < 4 || head[0] != 0x80 || head[1] < 2 || head[1] > 5)
        return false;
    return head[1] >= 4 ? head[2] == 0x95 : strchr("}](ccXKMJUCNGB)q\x88\x89\x8a", head[2]) && head[2];
}

static bool is_safetensors(const unsigned char *head, size_t size)
{
    return size > 10 && memcmp(head + 4, "\0\0\0\0{", 5) == 0 && (head[9] == '"' || head[9] == '}' || head[9] == ' ');
}

/* An old tar has no mark, but one for POSIX, GNU or both. */
static bool is_tar(const unsigned char *head, size_t size)
{
    return size >= 263 && memcmp(head + 257, "ustar", 5) == 0;
}

static bool is_riff(const unsigned char *head, size_t size, const char *kind)
{
    return size >= 12 && memcmp(head, "RIFF", 4) == 0 && memcmp(head + 8, kind, 4) == 0;
}

static bool is_webp(const unsigned char *head, size_t size)
{
    return is_riff(head, size, "WEBP");
}

static bool is_wave(const unsigned char *head, size_t size)
{
    return is_riff(head, size, "WAVE");
}

static bool is_bmp(const unsigned char *head, size_t size)
{
    return size >= 18 && memcmp(head, "BM", 2) == 0 && memcmp(head + 6, "\0\0\0\0", 4) == 0;
}

/* Indices of FAISS begin with four letters, the first of which is I, and the number of columns. */
static bool is_faiss(const unsigned char *head, size_t size)
{
    static const char *const kinds[] = {"IxFI", "IxF2", "IxFl", "IxPT", "IxPq", "IxPo", "IwFl", "IwPQ", "IwQR", "IwSQ",
                                        "IwSq", "IHNf", "IHNp", "IHNs", "IHN2", "IxSQ", "IxMp", "IxM2", "IxRF", "IBxF"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (size >= 12 && memcmp(head, kinds[i], 4) == 0)
            return true;
    return false;
}

/* Files of the kind that MP4 began have a brand; those of images are a few. */
static bool has_brand(const unsigned char *head, size_t size, const char *const *brands)
{
    if (size < 12 || memcmp(head + 4, "ftyp", 4) != 0)
        return false;
    for (; *brands; brands++)
        if (memcmp(head + 8, *brands, strlen(*brands)) == 0)
            return true;
    return false;
}

static bool is_heic(const unsigned char *head, size_t size)
{
    return has_brand(head, size, (const char *const[]){"hei", "hev", "mif1", "msf1", NULL});
}

static bool is_avif(const unsigned char *head, size_t size)
{
    return has_brand(head, size, (const char *const[]){"avif", "avis", NULL});
}

static bool is_mp4(const unsigned char *head, size_t size)
{
    return size >= 12 && memcmp(head + 4, "ftyp", 4) == 0;
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

#define MARK(text) .mark = (text), .mark_bytes = sizeof(text) - 1
#define PANDAS(read) "in Python: pandas." read ".to_csv('rows.csv', index=False)"
#define PICTURE "in Python: numpy.save('rows.npy', numpy.asarray(PIL.Image.open('@')))"
#define UNPACK(program) "unpack it first: " program

static const data_foreign kinds[] = {
    {"a Parquet file", MARK("PAR1"), .how = PANDAS("read_parquet('@')")},
    {"an encrypted Parquet file", MARK("PARE"), .how = NULL},
    {"an Arrow (Feather) file", MARK("ARROW1\0\0"), .how = PANDAS("read_feather('@')")},
    {"a Feather file of version 1", MARK("FEA1"), .how = PANDAS("read_feather('@')")},
    {"an Arrow stream", MARK("\xff\xff\xff\xff\x10"),
     .how = "in Python: pyarrow.ipc.open_stream('@').read_pandas().to_csv('rows.csv', index=False)"},
    {"an ORC file", MARK("ORC"), .how = PANDAS("read_orc('@')")},
    {"an Avro file", MARK("Obj\1"),
     .how = "in Python: pandas.DataFrame(fastavro.reader(open('@', 'rb'))).to_csv('rows.csv', index=False)"},
    {"an Excel workbook (.xls) or another old document of Office", MARK("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"),
     .how = PANDAS("read_excel('@')")},
    {"an SQLite database", MARK("SQLite format 3\0"), .how = "sqlite3 -csv -header @ 'SELECT * FROM ...' > rows.csv"},
    {"a DuckDB database", MARK("DUCK"), .place = 8, .how = "duckdb -csv @ 'SELECT * FROM ...' > rows.csv"},
    {"a pickle of PyTorch (.pt)", MARK("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"),
     .how = "in Python: numpy.save('rows.npy', torch.load('@', map_location='cpu', weights_only=True).numpy())"},
    {"a pickle of Python, which is never loaded, since that runs code", .test = is_pickle,
     .how = "if you trust it, in Python: numpy.save('rows.npy', numpy.asarray(pandas.read_pickle('@')))"},
    {"a file of tensors (safetensors), as models are", .test = is_safetensors,
     .how = "a model goes with shoal predict; in Python: numpy.save('rows.npy', "
            "safetensors.numpy.load_file('@')['name'])"},
    {"a GGUF model", MARK("GGUF"), .how = NULL},
    {"an index of FAISS", .test = is_faiss,
     .how = "in Python: index = faiss.read_index('@'); numpy.save('rows.npy', index.reconstruct_n(0, index.ntotal))"},
    {"an R data file", MARK("RDX"), .how = "in R: load('@'); write.csv(NAME, 'rows.csv', row.names=FALSE)"},
    {"an R data file", MARK("X\n\0\0\0"), .how = "in R: write.csv(readRDS('@'), 'rows.csv', row.names=FALSE)"},
    {"a data file of Stata", MARK("<stata_dta>"), .is_text = true, .how = PANDAS("read_stata('@')")},
    {"a data file of SPSS", MARK("$FL2"), .is_text = true, .how = PANDAS("read_spss('@')")},
    {"a file of NetCDF 3", MARK("CDF\1"), .how = "make it HDF5: nccopy -k nc4 @ rows.nc"},
    {"a file of NetCDF 3", MARK("CDF\2"), .how = "make it HDF5: nccopy -k nc4 @ rows.nc"},
    {"an HDF4 file", MARK("\x0e\x03\x13\x01"), .how = "make it HDF5: h4toh5 @ rows.h5"},
    {"a FITS file", MARK("SIMPLE  ="), .is_text = true,
     .how = "in Python: numpy.save('rows.npy', astropy.io.fits.getdata('@'))"},
    {"a Matrix Market file", MARK("%%MatrixMarket"), .is_text = true,
     .how = "in Python: numpy.save('rows.npy', numpy.asarray(scipy.io.mmread('@').todense()))"},
    {"a PNG image", MARK("\x89PNG\r\n\x1a\n"), .how = "cut squares out of it with shoal data patches; " PICTURE},
    {"a JPEG image", MARK("\xff\xd8\xff"), .how = "cut squares out of it with shoal data patches; " PICTURE},
    {"a GIF image", MARK("GIF8"), .how = PICTURE},
    {"a TIFF image", MARK("II*\0"), .how = PICTURE},
    {"a TIFF image", MARK("MM\0*"), .how = PICTURE},
    {"a WebP image", .test = is_webp, .how = PICTURE},
    {"a BMP image", .test = is_bmp, .how = PICTURE},
    {"a DICOM image", MARK("DICM"), .place = 128,
     .how = "in Python: numpy.save('rows.npy', pydicom.dcmread('@').pixel_array)"},
    {"a WAV sound", .test = is_wave, .how = "in Python: numpy.save('rows.npy', scipy.io.wavfile.read('@')[1])"},
    {"a FLAC sound", MARK("fLaC"), .how = NULL},
    {"an Ogg file", MARK("OggS"), .how = NULL},
    {"an MP3 sound", MARK("ID3"), .how = NULL},
    {"a HEIC image", .test = is_heic, .how = NULL},
    {"an AVIF image", .test = is_avif, .how = NULL},
    {"an MP4 video", .test = is_mp4, .how = NULL},
    {"a JPEG 2000 image", MARK("\0\0\0\x0cjP  \r\n\x87\n"), .how = PICTURE},
    {"a JPEG 2000 image", MARK("\xff\x4f\xff\x51"), .how = PICTURE},
    {"a JPEG XL image", MARK("\0\0\0\x0cJXL \r\n\x87\n"), .how = NULL},
    {"a Photoshop document", MARK("8BPS\0"), .how = PICTURE},
    {"a tar archive", .test = is_tar, .how = UNPACK("tar xf @")},
    {"a 7z archive", MARK("7z\xbc\xaf\x27\x1c"), .how = UNPACK("7z x @")},
    {"a RAR archive", MARK("Rar!\x1a\x07"), .how = UNPACK("unrar x @")},
    {"a file compressed by LZ4", MARK("\x04\x22\x4d\x18"), .how = UNPACK("unlz4 @")},
    {"a file compressed by compress", MARK("\x1f\x9d"), .how = UNPACK("uncompress @")},
    {"a file compressed by lzip", MARK("LZIP"), .how = UNPACK("lzip -d @")},
    {"a PDF document", MARK("%PDF-"), .is_text = true, .how = NULL},
    {"a program (ELF)",
     MARK("\x7f"
          "ELF"),
     .how = NULL},
    {"a pointer of Git LFS to a file that was not fetched", MARK("version https://git-lfs.github.com/spec/"),
     .is_text = true, .how = "fetch it: git lfs pull"},
    {"a page of HTML, as servers send in place of a file that is not there", .test = is_html, .is_text = true,
     .how = "download it again, or in Python: pandas.read_html('@')[0].to_csv('rows.csv', index=False)"},
    {"an XML file", .test = is_xml, .is_text = true, .how = PANDAS("read_xml('@')")},
    {"a JSON file", .test = is_json, .is_text = true,
     .how = "in Python: pandas.read_json('@').to_csv('rows.csv', index=False), with lines=True for JSON lines"},
    {"an ARFF file of Weka", MARK("@relation"), .is_text = true,
     .how = "in Python: pandas.DataFrame(scipy.io.arff.loadarff('@')[0]).to_csv('rows.csv', index=False)"},
    {"an ARFF file of Weka", MARK("@RELATION"), .is_text = true,
     .how = "in Python: pandas.DataFrame(scipy.io.arff.loadarff('@')[0]).to_csv('rows.csv', index=False)"},
};

/* A table may well begin with a column called PAR1. */
static bool is_binary(const unsigned char *head, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (head[i] == '\0' || (head[i] < ' ' && !strchr("\t\n\v\f\r", head[i])))
            return true;
    return false;
}

static bool is_kind(const data_foreign *kind, const unsigned char *head, size_t size, bool binary)
{
    if (!binary && !kind->is_text)
        return false;
    if (kind->test)
        return kind->test(head, size);
    return size >= kind->place + kind->mark_bytes && memcmp(head + kind->place, kind->mark, kind->mark_bytes) == 0;
}

static const data_foreign *find_kind(const unsigned char *head, size_t size)
{
    const bool binary = is_binary(head, size);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (is_kind(&kinds[i], head, size, binary))
            return &kinds[i];
    return NULL;
}

const char *data_foreign_name(const unsigned char *head, size_t size)
{
    const data_foreign *kind = find_kind(head, size);
    return kind ? kind->name : NULL;
}

/* ---- zip files --------------------------------------------------------------------------------------------------- */

const data_foreign data_foreign_zip = {"a zip file without an .npy array in it", .how = UNPACK("unzip @")};

const data_foreign *data_foreign_of_member(const char *name, size_t bytes)
{
    static const struct {
        const char *name;
        bool is_ending; /* else the start */
        data_foreign kind;
    } members[] = {
        {"xl/", false, {"an Excel workbook", .how = PANDAS("read_excel('@')")}},
        {"word/", false, {"a Word document", .how = NULL}},
        {"ppt/", false, {"a PowerPoint presentation", .how = NULL}},
        {"content.xml", false, {"an OpenDocument file", .how = PANDAS("read_excel('@')")}},
        {"/data.pkl",
         true,
         {"a file of PyTorch (.pt)",
          .how = "in Python: numpy.save('rows.npy', torch.load('@', map_location='cpu', weights_only=True).numpy())"}},
        {"model.weights.h5", false, {"a Keras model", .how = NULL}},
        {"META-INF/MANIFEST.MF", false, {"a Java archive", .how = NULL}},
    };
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        const size_t length = strlen(members[i].name);
        if (bytes >= length &&
            memcmp(members[i].is_ending ? name + bytes - length : name, members[i].name, length) == 0)
            return &members[i].kind;
    }
    return NULL;
}

/* ---- the sentence ------------------------------------------------------------------------------------------------ */

int data_foreign_fail(const char *path, const data_foreign *kind)
{
    const char *how = kind->how ? kind->how : "", *file = strchr(how, '@');
    const int before = (int)(file ? (size_t)(file - how) : strlen(how));
    return shoal_fail(SHOAL_INVALID, "%s is %s, which shoal does not read; it reads " DATA_FORMATS_READ "%s%.*s%s%s",
                      path, kind->name, kind->how ? "; " : "", before, how, file ? path : "", file ? file + 1 : "");
}

static bool recognise_foreign(const data_hint *hint)
{
    return hint->head && find_kind(hint->head, hint->head_size);
}

static int open_foreign(shoal_data *data, data_source *source, const shoal_data_options *options)
{
    (void)data, (void)options;
    return data_foreign_fail(source->path, find_kind(source->head, source->head_size));
}

const struct data_format data_foreign_format = {
    .name = "foreign", .takes_shape = true, .recognise = recognise_foreign, .open = open_foreign};
